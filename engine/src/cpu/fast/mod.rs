//! Fast versions of the twins that cost most, in `f32` with threads. Each is tested against the plain one.
//!
//! Work is cut into pieces by shape alone, never by the number of threads, and every element is computed by one piece in
//! a fixed order: the same bits on one core and on sixty-four.

pub(crate) mod math;
pub(crate) mod threads;

mod adamw;
mod anchor;
mod attention;
mod column_sum;
mod cross_entropy;
mod depth_attention;
mod dual_gates;
mod dual_write;
mod elementwise;
mod embedding;
mod grouped_matmul;
mod inverse_rms;
mod matmul;
mod mhc_gates;
mod rms_norm;
mod rope;
mod scaled_add;
mod square_sum;
mod stream_mix;
mod swiglu;

pub use anchor::gemm;

use super::Twin;
use super::twins::base_name;
use crate::kernel::Kernel;

/// The fast version of a kernel, if there is one.
pub(super) fn twin(kernel: &Kernel) -> Option<Twin<f32>> {
    Some(match (base_name(kernel), kernel.entry) {
        ("adamw", "update") => adamw::update,
        ("add", "forward") => elementwise::add,
        ("anchor", "copy") => anchor::copy,
        ("attention", "forward") => attention::forward,
        ("attention", "backward_delta") => attention::backward_delta,
        ("attention", "backward_query") => attention::backward_query,
        ("attention", "backward_key_value") => attention::backward_key_value,
        ("column_sum", "forward") => column_sum::forward,
        ("copy", "forward") => elementwise::copy,
        ("cross_entropy", "forward") => cross_entropy::forward,
        ("cross_entropy", "backward") => cross_entropy::backward,
        ("depth_attention", "scores") => depth_attention::scores,
        ("depth_attention", "softmax") => depth_attention::softmax,
        ("depth_attention", "forward") => depth_attention::forward,
        ("depth_attention", "backward_scores") => depth_attention::backward_scores,
        ("depth_attention", "backward_softmax") => depth_attention::backward_softmax,
        ("depth_attention", "backward") => depth_attention::backward,
        ("depth_attention", "sigmoid_weights") => depth_attention::sigmoid_weights,
        ("depth_attention", "backward_sigmoid") => depth_attention::backward_sigmoid,
        ("depth_attention", "backward_query") => depth_attention::backward_query,
        ("depth_attention", "backward_query_sum") => depth_attention::backward_query_sum,
        ("dual_gates", "forward") => dual_gates::forward,
        ("dual_gates", "backward_logits") => dual_gates::backward_logits,
        ("dual_gates", "backward") => dual_gates::backward,
        ("dual_gates", "backward_params") => dual_gates::backward_params,
        ("dual_gates", "backward_params_sum") => dual_gates::backward_params_sum,
        ("dual_write", "forward") => dual_write::forward,
        ("dual_write", "backward") => dual_write::backward,
        ("dual_write", "backward_gates") => dual_write::backward_gates,
        ("embedding", "forward") => embedding::forward,
        ("embedding", "backward_links") => embedding::backward_links,
        ("embedding", "backward") => embedding::backward,
        ("inverse_rms", "forward") => inverse_rms::forward,
        ("inverse_rms", "backward") => inverse_rms::backward,
        ("grouped_matmul" | "grouped_matmul_vec4", "nt") => grouped_matmul::nt,
        ("grouped_matmul" | "grouped_matmul_vec4", "nn") => grouped_matmul::nn,
        ("grouped_matmul" | "grouped_matmul_vec4", "tn") => grouped_matmul::tn,
        ("matmul" | "matmul_vec4" | "matmul_wide", "nt") => matmul::nt,
        ("matmul" | "matmul_vec4" | "matmul_wide", "nn") => matmul::nn,
        ("matmul" | "matmul_vec4" | "matmul_wide", "tn") => matmul::tn,
        ("mhc_gates", "forward") => mhc_gates::forward,
        ("mhc_gates", "backward") => mhc_gates::backward,
        ("rms_norm", "forward") => rms_norm::forward,
        ("rms_norm", "backward") => rms_norm::backward,
        ("rms_norm", "backward_gain") => rms_norm::backward_gain,
        ("rope", "rotate") => rope::rotate,
        ("scaled_add", "forward") => scaled_add::forward,
        ("scaled_add", "backward_h") => scaled_add::backward_h,
        ("scaled_add", "backward_o") => scaled_add::backward_o,
        ("scaled_add", "backward_scale") => scaled_add::backward_scale,
        ("square_sum", "squares") => square_sum::squares,
        ("stream_mix", "forward") => stream_mix::forward,
        ("stream_mix", "backward_weights") => stream_mix::backward_weights,
        ("swiglu", "forward") => swiglu::forward,
        ("swiglu", "backward") => swiglu::backward,
        _ => return None,
    })
}
