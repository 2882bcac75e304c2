//! Depth weights as somebody wants them: cut, pinned, swapped or made uniform, to ask what a route is worth.
//!
//! On a tape that is `editing`, every depth mix maps its weights with an input that the caller fills before a run. The
//! kernel is `shaders/edit_weights.wgsl`. Weight is not importance: what is measured is the loss with the edited weights.

use super::copy::copy;
use crate::error::{Error, Result};
use crate::kernel::kernels;
use crate::plan::Arg;
use crate::tape::{Recorder, Tape, Tensor};

crate::params! {
    /// Parameters of the kernel.
    pub struct Params {
        /// Tokens.
        rows: u32,
        /// Weights of a token.
        columns: u32,
    }
}

/// Elements of an edit of `columns` weights.
#[must_use]
pub fn edit_len(columns: u32) -> u32 {
    columns * columns + columns + 1
}

/// Record the edit of `weights` `[rows, columns]` in place.
pub(super) fn record(
    rec: &mut Recorder,
    weights: Arg,
    edit: Arg,
    rows: u32,
    columns: u32,
) -> Result<()> {
    let params = Params { rows, columns };
    rec.dispatch(
        &kernels::EDIT_WEIGHTS_APPLY,
        params,
        &[edit, weights],
        rows as usize,
    )
}

/// Weights that all tokens share: on an editing tape an edited copy, else the same tensor.
///
/// # Errors
/// If a kernel call is malformed.
pub fn edited(tape: &mut Tape, weights: Tensor) -> Result<Tensor> {
    let columns = weights.shape.len() as u32;
    let Some(edit) = tape.next_edit(edit_len(columns)) else {
        return Ok(weights);
    };
    let copied = copy(tape, weights)?;
    let params = Params { rows: 1, columns };
    tape.dispatch(&kernels::EDIT_WEIGHTS_APPLY, params, &[edit, copied], 1)?;
    Ok(copied)
}

/// What to do to the weights of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteEdit {
    /// Take a source out: the others share its weight in proportion, where weights sum to one.
    Cut(usize),
    /// All weight on one source.
    Pin(usize),
    /// Exchange the weights of two sources.
    Swap(usize, usize),
    /// The same weight for all.
    Uniform,
}

/// The content of the input that does `edits`, one after the other, to `columns` weights, which
/// sum to one or do not (`sum_to_one`). No edits: nothing changes, to the bit.
///
/// # Errors
/// If an edit names a column that does not exist, or cuts the only one.
pub fn edit_values(columns: usize, edits: &[RouteEdit], sum_to_one: bool) -> Result<Vec<f64>> {
    let n = columns;
    let mut map: Vec<f64> = (0..n * n).map(|at| f64::from(at / n == at % n)).collect();
    let mut shift = vec![0.0; n];
    let mut renormalise = false;
    let refuse = |message: String| Error::Op {
        op: "edit",
        message,
    };
    for edit in edits {
        let named = match *edit {
            RouteEdit::Cut(c) | RouteEdit::Pin(c) => vec![c],
            RouteEdit::Swap(a, b) => vec![a, b],
            RouteEdit::Uniform => Vec::new(),
        };
        if let Some(column) = named.iter().find(|&&column| column >= n) {
            let message = format!("there is no source {column}: this read has {n}");
            return Err(refuse(message));
        }
        let mut set = |column: usize, value: f64| {
            (0..n).for_each(|row| map[row * n + column] = 0.0);
            shift[column] = value;
        };
        match *edit {
            RouteEdit::Cut(_) if n == 1 => {
                return Err(refuse("the only source of a read cannot be cut".into()));
            }
            RouteEdit::Cut(column) => {
                set(column, 0.0);
                renormalise = sum_to_one;
            }
            RouteEdit::Pin(column) => {
                (0..n).for_each(|other| set(other, f64::from(other == column)));
                renormalise = false;
            }
            RouteEdit::Uniform => {
                (0..n).for_each(|other| set(other, 1.0 / n as f64));
                renormalise = false;
            }
            RouteEdit::Swap(a, b) => {
                shift.swap(a, b);
                (0..n).for_each(|row| map.swap(row * n + a, row * n + b));
            }
        }
    }
    let mut values = map;
    values.append(&mut shift);
    values.push(f64::from(renormalise));
    Ok(values)
}
