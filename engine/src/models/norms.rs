//! Sizes of what flows through depth, for looks at a model: published by watching tapes, absent from all others.

use crate::error::Result;
use crate::kernel::kernels;
use crate::optim::clip::SumParams;
use crate::tape::{Tape, Tensor};

/// Numbers per partial sum, at least.
const CHUNK: usize = 256;

/// Partial sums at most.
const MOST_PARTS: usize = 1024;

/// Name of the published sum of squares of what site `site` reads: two numbers, the second 1 if something was not finite.
#[must_use]
pub fn input_name(site: u32) -> String {
    format!("norm.input.{site}")
}

/// The same of what the sublayer of site `site` gives.
#[must_use]
pub fn output_name(site: u32) -> String {
    format!("norm.output.{site}")
}

/// Publish the sum of the squares of `x` under a name.
pub(super) fn publish(tape: &mut Tape, name: impl FnOnce() -> String, x: Tensor) -> Result<()> {
    if !tape.is_watching() {
        return Ok(());
    }
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let len = x.shape.len();
    let parts = len.div_ceil(CHUNK).min(MOST_PARTS);
    let partial = tape.scratch("squares", 2 * parts);
    let params = SumParams {
        len: number(len),
        count: number(parts),
        first: 0,
        total: number(parts),
    };
    tape.dispatch(&kernels::SQUARE_SUM_SQUARES, params, &[x, partial], parts)?;
    let sum = tape.scratch("sum of squares", 2);
    let params = SumParams {
        len: number(parts),
        count: 1,
        first: 0,
        total: 1,
    };
    tape.dispatch(&kernels::SQUARE_SUM_SUMS, params, &[partial, sum], 1)?;
    tape.watch(name, sum);
    Ok(())
}
