//! The table of plain twins: kernel id to function. A test holds it against the list of kernels.

use super::{
    Real, Twin, adamw, clip, column_sum, copy, dual_gates, dual_write, rms_norm, scaled_add,
    square_sum,
};
use crate::kernel::Kernel;

/// The plain twin of a kernel.
pub(crate) fn plain<T: Real>(kernel: &Kernel) -> Option<Twin<T>> {
    Some(match (kernel.name, kernel.entry) {
        ("adamw", "update") => adamw::update,
        ("clip", "record_loss") => clip::record_loss,
        ("clip", "finish") => clip::finish,
        ("column_sum", "forward") => column_sum::forward,
        ("copy", "forward") => copy::forward,
        ("dual_gates", "forward") => dual_gates::forward,
        ("dual_gates", "backward_logits") => dual_gates::backward_logits,
        ("dual_gates", "backward") => dual_gates::backward,
        ("dual_gates", "backward_params") => dual_gates::backward_params,
        ("dual_gates", "backward_params_sum") => dual_gates::backward_params_sum,
        ("dual_write", "forward") => dual_write::forward,
        ("dual_write", "backward") => dual_write::backward,
        ("dual_write", "backward_gates") => dual_write::backward_gates,
        ("rms_norm", "forward") => rms_norm::forward,
        ("rms_norm", "backward") => rms_norm::backward,
        ("rms_norm", "backward_gain") => rms_norm::backward_gain,
        ("scaled_add", "forward") => scaled_add::forward,
        ("scaled_add", "backward_h") => scaled_add::backward_h,
        ("scaled_add", "backward_o") => scaled_add::backward_o,
        ("scaled_add", "backward_scale") => scaled_add::backward_scale,
        ("square_sum", "squares") => square_sum::squares,
        ("square_sum", "sums") => square_sum::sums,
        _ => return None,
    })
}
