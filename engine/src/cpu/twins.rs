//! The table of plain twins: kernel id to function. A test holds it against the list of kernels.

use super::{
    Real, Twin, adamw, add, attention, clip, column_sum, copy, cross_entropy, depth_attention,
    dual_gates, dual_write, embedding, inverse_rms, matmul, mhc_gates, rms_norm, rope, scaled_add,
    slot_add, square_sum, stream_coefficients, stream_mix, swiglu,
};
use crate::kernel::Kernel;

/// The plain twin of a kernel.
pub(crate) fn plain<T: Real>(kernel: &Kernel) -> Option<Twin<T>> {
    Some(match (base_name(kernel), kernel.entry) {
        ("adamw", "update") => adamw::update,
        ("add", "forward") => add::forward,
        ("attention", "forward") => attention::forward,
        ("attention", "backward_delta") => attention::backward_delta,
        ("attention", "backward_query") => attention::backward_query,
        ("attention", "backward_key_value") => attention::backward_key_value,
        ("clip", "record_loss") => clip::record_loss,
        ("clip", "finish") => clip::finish,
        ("column_sum", "forward") => column_sum::forward,
        ("copy", "forward") => copy::forward,
        ("cross_entropy", "forward") => cross_entropy::forward,
        ("cross_entropy", "forward_blocks") => cross_entropy::forward_blocks,
        ("cross_entropy", "forward_mean") => cross_entropy::forward_mean,
        ("cross_entropy", "backward") => cross_entropy::backward,
        ("depth_attention", "scores") => depth_attention::scores,
        ("depth_attention", "softmax") => depth_attention::softmax,
        ("depth_attention", "forward") => depth_attention::forward,
        ("depth_attention", "backward_scores") => depth_attention::backward_scores,
        ("depth_attention", "backward_softmax") => depth_attention::backward_softmax,
        ("depth_attention", "backward") => depth_attention::backward,
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
        ("embedding", "backward_clear") => embedding::backward_clear,
        ("embedding", "backward") => embedding::backward,
        ("inverse_rms", "forward") => inverse_rms::forward,
        ("inverse_rms", "backward") => inverse_rms::backward,
        ("matmul" | "matmul_vec4", "nt") => matmul::nt,
        ("matmul" | "matmul_vec4", "nn") => matmul::nn,
        ("matmul" | "matmul_vec4", "tn") => matmul::tn,
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
        ("square_sum", "sums") => square_sum::sums,
        ("stream_coefficients", "forward") => stream_coefficients::forward,
        ("stream_coefficients", "backward_dots") => stream_coefficients::backward_dots,
        ("stream_coefficients", "backward_factors") => stream_coefficients::backward_factors,
        ("stream_coefficients", "backward_params") => stream_coefficients::backward_params,
        ("stream_coefficients", "backward_params_sum") => stream_coefficients::backward_params_sum,
        ("stream_mix", "forward") => stream_mix::forward,
        ("stream_mix", "backward_weights") => stream_mix::backward_weights,
        ("swiglu", "forward") => swiglu::forward,
        ("swiglu", "backward") => swiglu::backward,
        ("slot_add", "forward") => slot_add::forward,
        ("slot_add", "backward") => slot_add::backward,
        _ => return None,
    })
}

/// The file whose maths a kernel computes: there may be several, for different shapes.
pub(super) fn base_name(kernel: &Kernel) -> &'static str {
    match kernel.name {
        "attention_16" | "attention_32" | "attention_64" | "attention_128" => "attention",
        "depth_attention_vec4" => "depth_attention",
        name => name,
    }
}
