//! Fast versions of the twins that cost most, in `f32` with threads. Each is tested against the plain one.
//!
//! Work is cut into pieces by shape alone, never by the number of threads, and every element is computed by one piece in
//! a fixed order: the same bits on one core and on sixty-four.

mod adamw;
mod dual_gates;
mod dual_write;
pub(crate) mod math;
mod scaled_add;
mod square_sum;
pub(crate) mod threads;

use super::Twin;
use crate::kernel::Kernel;

/// The fast version of a kernel, if there is one.
pub(super) fn twin(kernel: &Kernel) -> Option<Twin<f32>> {
    Some(match (kernel.name, kernel.entry) {
        ("adamw", "update") => adamw::update,
        ("dual_gates", "forward") => dual_gates::forward,
        ("dual_gates", "backward_logits") => dual_gates::backward_logits,
        ("dual_gates", "backward") => dual_gates::backward,
        ("dual_gates", "backward_params") => dual_gates::backward_params,
        ("dual_gates", "backward_params_sum") => dual_gates::backward_params_sum,
        ("dual_write", "forward") => dual_write::forward,
        ("dual_write", "backward") => dual_write::backward,
        ("dual_write", "backward_gates") => dual_write::backward_gates,
        ("scaled_add", "forward") => scaled_add::forward,
        ("scaled_add", "backward_h") => scaled_add::backward_h,
        ("scaled_add", "backward_o") => scaled_add::backward_o,
        ("scaled_add", "backward_scale") => scaled_add::backward_scale,
        ("square_sum", "squares") => square_sum::squares,
        _ => return None,
    })
}
