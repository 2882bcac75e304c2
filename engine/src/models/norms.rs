//! Sizes of what flows through depth, for looks at a model: published by watching tapes, absent from all others.

use crate::error::Result;
use crate::kernel::kernels;
use crate::ops::inverse_rms::inverse_rms;
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

/// The same of the gradient with respect to the parameters of the sublayer of site `site`; those of the read-out are the
/// last norm's and, untied, the head's.
#[must_use]
pub fn gradient_name(site: u32) -> String {
    format!("norm.gradient.{site}")
}

/// Name of the published size of each row of the gradient with respect to what sublayer `site` gives.
#[must_use]
pub fn output_gradient_name(site: u32) -> String {
    format!("norm.output.gradient.{site}")
}

/// Name under which analysing tapes publish rows of what has `name` as a sum.
#[must_use]
pub fn rows_name(name: &str) -> String {
    format!("{name}.rows")
}

/// Added to a mean square, so that rows of zeros have a factor: below anything of interest.
const LEAST_SQUARE: f64 = 1e-30;

/// The root mean square of a row, from a published factor.
#[must_use]
pub fn size_of_row(factor: f64) -> f64 {
    (1.0 / (factor * factor) - LEAST_SQUARE).max(0.0).sqrt()
}

/// Publish 1 / (root mean square) of each row of `x` `[rows, d]` under a name: read it with [`size_of_row`].
pub(super) fn publish_rows(tape: &mut Tape, name: &str, x: Tensor) -> Result<()> {
    let factors = inverse_rms(tape, x, LEAST_SQUARE)?;
    tape.output(name, factors);
    Ok(())
}

/// Publish the sum of the squares of `x` under a name, and on analysing tapes the size of each row.
pub(super) fn publish(tape: &mut Tape, name: impl Fn() -> String, x: Tensor) -> Result<()> {
    if !tape.is_watching() {
        return Ok(());
    }
    if tape.is_analysing() {
        publish_rows(tape, &rows_name(&name()), x)?;
    }
    let sum = sum_of_squares(tape, &[x])?;
    tape.watch(name, sum);
    Ok(())
}

/// The sum of the squares of all `parts`, and 1 if something was not finite: two numbers.
pub(super) fn sum_of_squares(tape: &mut Tape, parts: &[Tensor]) -> Result<Tensor> {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let sums_of = |x: &Tensor| x.shape.len().div_ceil(CHUNK).min(MOST_PARTS);
    let total: usize = parts.iter().map(sums_of).sum();
    let partial = tape.scratch("squares", 2 * total);
    let mut first = 0;
    for x in parts {
        let count = sums_of(x);
        let params = SumParams {
            len: number(x.shape.len()),
            count: number(count),
            first: number(first),
            total: number(total),
        };
        tape.dispatch(&kernels::SQUARE_SUM_SQUARES, params, &[*x, partial], count)?;
        first += count;
    }
    let sum = tape.scratch("sum of squares", 2);
    let params = SumParams {
        len: number(total),
        count: 1,
        first: 0,
        total: 1,
    };
    tape.dispatch(&kernels::SQUARE_SUM_SUMS, params, &[partial, sum], 1)?;
    Ok(sum)
}
