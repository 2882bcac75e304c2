//! Gradient norm, clipping, and the watch over numbers that are not finite.
//!
//! The kernels are `shaders/square_sum.wgsl` (the sum, in levels of fixed order) and `shaders/clip.wgsl` (what follows from
//! it). The layout of the status buffer stands in [`super`].

use super::{STATUS_LOSS, pieces};
use crate::error::{Error, Result};
use crate::kernel::kernels;
use crate::plan::External;
use crate::tape::{Tape, Tensor};

crate::params! {
    /// Parameters of `square_sum`.
    pub struct SumParams {
        /// Numbers to add.
        len: u32,
        /// Partial sums of this call.
        count: u32,
        /// The first of them in the buffer.
        first: u32,
        /// Partial sums in the buffer.
        total: u32,
    }
}

crate::params! {
    /// Parameters of `clip`.
    pub struct Params {
        /// Partial sums of squares; 1 for `record_loss`.
        len: u32,
        /// Element of the status buffer that `record_loss` adds to.
        entry: u32,
        /// Largest norm; 0: no clipping.
        clip: f64,
    }
}

/// Numbers per partial sum, on every level.
const CHUNK: usize = 256;

/// Add `loss` `[1]` to the loss of the step, at the end of a forward and backward plan. With gradient accumulation several
/// losses make one step, and the ring holds their *sum*: scale each, as its gradient, by one over their number.
///
/// `status` is the whole buffer: `tape.external(External::Status, STATUS_LEN)`.
///
/// # Errors
/// If `loss` is not one number.
pub fn record_loss(tape: &mut Tape, loss: Tensor, status: Tensor) -> Result<()> {
    record_part(tape, loss, STATUS_LOSS, status)
}

/// As [`record_loss`], for a part of the objective that is kept apart: `entry` is [`super::STATUS_BALANCE`] or
/// [`super::STATUS_Z`].
///
/// # Errors
/// If `loss` is not one number.
pub fn record_part(tape: &mut Tape, loss: Tensor, entry: usize, status: Tensor) -> Result<()> {
    if loss.shape.len() != 1 {
        return Err(Error::shape("record_loss", "loss", [1], loss.shape));
    }
    let params = Params {
        len: 1,
        entry: entry as u32,
        clip: 0.0,
    };
    tape.dispatch(&kernels::CLIP_RECORD_LOSS, params, &[loss, status], 1)
}

/// Record the norm of the gradient of all trained parameters, read in ranges of at most `limit` elements, and the end of the step's books.
pub(super) fn record_norm(
    tape: &mut Tape,
    clip: f64,
    scalars: Tensor,
    status: Tensor,
    limit: usize,
) -> Result<()> {
    let whole = tape.parameters().arena_len();
    let ranges: Vec<_> = pieces(0..tape.parameters().trained_len(), limit).collect();
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);

    let mut len: usize = ranges.iter().map(|range| range.len().div_ceil(CHUNK)).sum();
    let mut partial = tape.scratch("squares of the gradient", 2 * len);
    let mut first = 0;
    for range in ranges {
        let count = range.len().div_ceil(CHUNK);
        let params = SumParams {
            len: number(range.len()),
            count: number(count),
            first: number(first),
            total: number(len),
        };
        let grads = tape.external_range(External::Grads, whole, range);
        tape.dispatch(
            &kernels::SQUARE_SUM_SQUARES,
            params,
            &[grads, partial],
            count,
        )?;
        first += count;
    }
    while len > CHUNK {
        let count = len.div_ceil(CHUNK);
        let sums = tape.scratch("sums of squares", 2 * count);
        let params = SumParams {
            len: number(len),
            count: number(count),
            first: 0,
            total: number(count),
        };
        tape.dispatch(&kernels::SQUARE_SUM_SUMS, params, &[partial, sums], count)?;
        (partial, len) = (sums, count);
    }
    let params = Params {
        len: number(len),
        entry: 0,
        clip,
    };
    tape.dispatch(
        &kernels::CLIP_FINISH,
        params,
        &[partial, scalars, status],
        1,
    )
}
