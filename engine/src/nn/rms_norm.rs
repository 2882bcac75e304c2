//! A norm with a named gain.

use crate::error::Result;
use crate::ops::rms_norm::rms_norm;
use crate::params::{Init, ParamSpec};
use crate::tape::{Tape, Tensor};

/// The gain `[dim]`, one at the start, not decayed.
#[must_use]
pub fn parameter(name: impl Into<String>, dim: u32) -> ParamSpec {
    ParamSpec::base(name, [dim], Init::Constant(1.0), false)
}

/// Normalise the last dimension of `x` and scale it by parameter `gain`.
///
/// # Errors
/// If the parameter is missing or has another length.
pub fn norm(tape: &mut Tape, gain: &str, x: Tensor, eps: f64) -> Result<Tensor> {
    let gain = tape.parameter(gain)?;
    rms_norm(tape, x, gain, eps)
}
