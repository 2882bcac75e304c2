//! Rows of a table by number.
//!
//! `y[row] = table[ids[row]]`. The kernels are `shaders/embedding.wgsl`; the gradient walks chains of equal ids, so that it
//! needs no atomics and its cost does not grow with the vocabulary.

use crate::error::{Error, Result};
use crate::kernel::kernels;
use crate::shape::Shape;
use crate::tape::{Op, Recorder, Tape, Tensor};

crate::params! {
    /// Parameters of the kernels.
    pub struct Params {
        /// Number of ids.
        rows: u32,
        /// Length of a row of the table.
        dim: u32,
        /// Rows of the table.
        vocab: u32,
    }
}

#[derive(Debug)]
struct Embedding {
    params: Params,
}

/// Look up `ids` (unsigned integers, any shape) in `table` `[vocab, dim]`. Returns `[number of ids, dim]`.
///
/// Ids must be below `vocab`; the caller checks them, since they are data. Larger ones read the last row.
///
/// # Errors
/// If `table` is not a matrix.
pub fn embedding(tape: &mut Tape, ids: Tensor, table: Tensor) -> Result<Tensor> {
    let &[vocab, dim] = table.shape.dims() else {
        return Err(Error::shape(
            "embedding",
            "table",
            ["vocab", "dim"],
            table.shape,
        ));
    };
    let rows = ids.shape.rows() * ids.shape.last();
    let params = Params { rows, dim, vocab };
    Ok(tape.record(
        Embedding { params },
        &[ids, table],
        &[Shape::from([rows, dim])],
    )?[0])
}

impl Op for Embedding {
    fn name(&self) -> &'static str {
        "embedding"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let args = [rec.value(x[0]), rec.value(x[1]), rec.value(y[0])];
        rec.dispatch(
            &kernels::EMBEDDING_FORWARD,
            self.params.clone(),
            &args,
            y[0].shape.len(),
        )
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let (Some(dy), Some(d_table)) = (rec.out_grad(y[0]), rec.grad(x[1])) else {
            return Ok(());
        };
        let ids = rec.value(x[0]);
        let rows = self.params.rows as usize;
        let next = rec.scratch_ints("next row", rows);
        let first = rec.scratch_ints("first row", rows);
        rec.dispatch(
            &kernels::EMBEDDING_BACKWARD_LINKS,
            self.params.clone(),
            &[ids, next, first],
            rows,
        )?;
        if d_table.add == 0 {
            rec.dispatch(
                &kernels::EMBEDDING_BACKWARD_CLEAR,
                self.params.clone(),
                &[d_table.arg],
                x[1].shape.len(),
            )?;
        }
        rec.dispatch(
            &kernels::EMBEDDING_BACKWARD,
            self.params.clone(),
            &[ids, next, first, dy, d_table.arg],
            y[0].shape.len(),
        )
    }
}
