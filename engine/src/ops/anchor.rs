//! Two measures of a device, with which other kernels are compared: how fast it copies and how fast it computes.
//!
//! Neither has a gradient, and no model contains them. The kernels are `shaders/anchor.wgsl`.

use crate::error::{Error, Result};
use crate::kernel::{Kernel, kernels};
use crate::tape::{Tape, Tensor};

crate::params! {
    /// Parameters of the kernels.
    pub struct Params {
        /// Vectors of four numbers.
        len: u32,
        /// Rounds of `multiply_add`.
        rounds: u32,
    }
}

/// Operations of an invocation of [`multiply_add`] in a round: eight chains of vectors of four, a product and a sum each.
pub const OPERATIONS: u64 = 64;

/// `y = x`, of which the length is divisible by four.
///
/// # Errors
/// If it is not, or `x` is empty.
pub fn copy(tape: &mut Tape, x: Tensor) -> Result<Tensor> {
    record(tape, &kernels::ANCHOR_COPY, x, 0)
}

/// A number for each of `x`, of which the length is divisible by four, after `rounds` rounds in registers.
///
/// # Errors
/// As [`copy`].
pub fn multiply_add(tape: &mut Tape, x: Tensor, rounds: u32) -> Result<Tensor> {
    record(tape, &kernels::ANCHOR_MULTIPLY_ADD, x, rounds)
}

fn record(tape: &mut Tape, kernel: &'static Kernel, x: Tensor, rounds: u32) -> Result<Tensor> {
    let len = x.shape.len();
    if !len.is_multiple_of(4) {
        return Err(Error::Op {
            op: "anchor",
            message: format!("{len} numbers are no whole vectors of four"),
        });
    }
    let y = tape.scratch("anchor", len);
    let params = Params {
        len: (len / 4) as u32,
        rounds,
    };
    tape.dispatch(kernel, params, &[x, y], len / 4)?;
    Ok(y)
}
