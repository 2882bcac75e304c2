//! The table of plain twins: kernel id to function. A test holds it against the list of kernels.

use super::{Real, Twin, column_sum, copy, rms_norm};
use crate::kernel::Kernel;

/// The plain twin of a kernel.
pub(crate) fn plain<T: Real>(kernel: &Kernel) -> Option<Twin<T>> {
    Some(match (kernel.name, kernel.entry) {
        ("column_sum", "forward") => column_sum::forward,
        ("copy", "forward") => copy::forward,
        ("rms_norm", "forward") => rms_norm::forward,
        ("rms_norm", "backward") => rms_norm::backward,
        ("rms_norm", "backward_gain") => rms_norm::backward_gain,
        _ => return None,
    })
}
