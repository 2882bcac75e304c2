//! Sum over rows in a fixed order, in two levels.
//!
//! A gradient of a parameter is a sum over all tokens. Kernels first sum blocks of rows ([`blocks`]) and write one row of
//! partial sums a block; `shaders/column_sum.wgsl` then adds the blocks, first to last. No atomics, so two runs agree to
//! the bit, and the error grows with the square root of the number of tokens only.

use crate::error::Result;
use crate::kernel::kernels;
use crate::plan::Arg;
use crate::tape::Recorder;

crate::params! {
    /// Parameters of the kernel.
    pub struct Params {
        /// Rows of partial sums.
        rows: u32,
        /// Columns.
        dim: u32,
        /// Add to the output instead of storing.
        add: u32,
    }
}

/// Into how many blocks `rows` are cut, and how many rows a block has. Depends on the shape only.
#[must_use]
pub fn blocks(rows: u32) -> (u32, u32) {
    let chunk = rows.div_ceil(64).max(16);
    (rows.div_ceil(chunk), chunk)
}

/// `out[i] (+)= sum over rows of partial[row, i]`.
///
/// # Errors
/// If the arguments are malformed.
pub fn column_sum(rec: &mut Recorder, partial: Arg, params: Params, out: Arg) -> Result<()> {
    let items = params.dim as usize;
    rec.dispatch(&kernels::COLUMN_SUM_FORWARD, params, &[partial, out], items)
}
