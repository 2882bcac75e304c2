//! Other numbers in the place of a tensor's, in place and while a switch is on: corrupted states, frozen weights and gates.
//!
//! For tapes that are `analysing` only. What takes the place, and the switch, are inputs that the caller fills before a run
//! ([`Tape::standing_input`]); while the switch is 0 nothing changes, to the bit. The kernel is `shaders/replace.wgsl`.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::kernel::kernels;
use crate::plan::Arg;
use crate::tape::{Recorder, Tape, Tensor};

crate::params! {
    /// Parameters of the kernel.
    pub struct Params {
        /// Rows of the tensor.
        rows: u32,
        /// Length of a row.
        width: u32,
        /// First column that is replaced.
        first: u32,
        /// Columns that are replaced.
        columns: u32,
        /// Elements from the numbers of one row to those of the next; 0 if all rows get the same.
        stride: u32,
    }
}

/// Record it: `columns` of `y` `[rows, width]` become `by` `[rows, columns]`, or `[columns]` for all rows, while `on` `[1]` is
/// not 0.
///
/// # Errors
/// If the shapes do not belong together.
pub fn replace(
    tape: &mut Tape,
    on: Tensor,
    by: Tensor,
    y: Tensor,
    columns: Range<u32>,
) -> Result<()> {
    let (rows, width) = (y.shape.rows(), y.shape.last());
    let count = columns.end.saturating_sub(columns.start);
    let shared = by.shape.len() == count as usize;
    let fits = shared || by.shape.len() == (rows * count) as usize;
    if count == 0 || columns.end > width || !fits || on.shape.len() != 1 {
        let expected = format!("[{rows} or 1, columns within {width}]");
        return Err(Error::shape("replace", "by", expected, by.shape));
    }
    let params = Params {
        rows,
        width,
        first: columns.start,
        columns: count,
        stride: if shared { 0 } else { count },
    };
    let items = (rows * count) as usize;
    tape.dispatch(&kernels::REPLACE_APPLY, params, &[on, by, y], items)
}

/// As [`replace`], of all columns, within an op.
pub(super) fn record(
    rec: &mut Recorder,
    on: Arg,
    by: Arg,
    y: Arg,
    rows: u32,
    width: u32,
) -> Result<()> {
    let params = Params {
        rows,
        width,
        first: 0,
        columns: width,
        stride: width,
    };
    let items = (rows * width) as usize;
    rec.dispatch(&kernels::REPLACE_APPLY, params, &[on, by, y], items)
}
