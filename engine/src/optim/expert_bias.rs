//! The selection bias of experts: balance without a loss (Wang et al. 2024, arXiv 2408.15664; checkpoint format, section 5.3).
//!
//! `bias_e += rate sign(mean(c) - c_e)` after each update, with the counts `c` of that step's batch. The kernel is
//! `shaders/expert_bias.wgsl`. The bias is an untrained parameter; [`count`] adds up its counts, over the passes of a step,
//! in its range of the gradients, which has no other use and is cleared with them.

use crate::error::{Error, Result};
use crate::kernel::kernels;
use crate::ops::copy;
use crate::plan::External;
use crate::tape::{Tape, Tensor};

use super::STATUS_LEN;

crate::params! {
    /// Parameters of the kernel.
    pub struct Params {
        /// Experts of the layer.
        experts: u32,
        /// Step of the bias.
        rate: f64,
    }
}

/// The range of parameter `bias` in a buffer with the layout of the parameters.
fn range(tape: &mut Tape, external: External, bias: &str) -> Result<Tensor> {
    let parameters = tape.parameters().clone();
    let missing = || Error::Op {
        op: "expert_bias",
        message: format!("`{bias}` is not in the parameter table"),
    };
    let range = parameters.range(parameters.position(bias).ok_or_else(missing)?);
    Ok(tape.external_range(external, parameters.arena_len(), range))
}

/// At the end of a pass: add how often each expert was chosen, the first elements of `counts`.
///
/// # Errors
/// If there is no parameter `bias`.
pub fn count(tape: &mut Tape, bias: &str, counts: Tensor) -> Result<()> {
    let sums = range(tape, External::Grads, bias)?;
    let len = sums.shape.len();
    let params = copy::Params {
        len: len as u32,
        add: 1,
    };
    tape.dispatch(&kernels::COPY_FORWARD, params, &[counts, sums], len)
}

/// At the end of an update: move parameter `bias` by `rate`, unless the step was stopped.
///
/// # Errors
/// If there is no parameter `bias`.
pub fn record(tape: &mut Tape, bias: &str, rate: f64) -> Result<()> {
    let counts = range(tape, External::Grads, bias)?;
    let values = range(tape, External::Values, bias)?;
    let status = tape.external(External::Status, STATUS_LEN);
    let experts = values.shape.len();
    let params = Params {
        experts: experts as u32,
        rate,
    };
    let args = [counts, status, values];
    tape.dispatch(&kernels::EXPERT_BIAS_UPDATE, params, &args, experts)
}
