//! Cross-entropy of logits with labels, the training loss.
//!
//! `loss = scale * mean over rows of (log sum over v of exp(logits[v]) - logits[label])`. The kernels are
//! `shaders/cross_entropy.wgsl`.

use super::column_sum::blocks;
use crate::error::{Error, Result};
use crate::kernel::kernels;
use crate::shape::Shape;
use crate::tape::{Op, Recorder, Tape, Tensor};

crate::params! {
    /// Parameters of the kernels.
    pub struct Params {
        /// Tokens.
        rows: u32,
        /// Logits of a token.
        vocab: u32,
        /// Rows per block of the sum over tokens.
        chunk: u32,
        /// Add to the gradient instead of storing.
        add: u32,
        /// The mean is multiplied by this.
        scale: f64,
    }
}

/// What [`cross_entropy`] returns.
#[derive(Clone, Copy, Debug)]
pub struct CrossEntropy {
    /// `scale` times the mean over rows, `[1]`.
    pub loss: Tensor,
    /// The loss of each row, not scaled, `[rows]`. To be read, not to be differentiated.
    pub row_losses: Tensor,
}

#[derive(Debug)]
struct Loss {
    params: Params,
}

/// Cross-entropy of `logits` `[.., vocab]` with `labels`, one unsigned integer a row. `scale` is 1 divided by the number of
/// batches whose gradients are accumulated.
///
/// Labels must be below `vocab`; the caller checks them, since they are data. Larger ones count as the last.
///
/// # Errors
/// If there are not as many labels as rows.
pub fn cross_entropy(
    tape: &mut Tape,
    logits: Tensor,
    labels: Tensor,
    scale: f64,
) -> Result<CrossEntropy> {
    let (rows, vocab) = (logits.shape.rows(), logits.shape.last());
    if labels.shape.len() != rows as usize {
        return Err(Error::shape(
            "cross_entropy",
            "labels",
            [rows],
            labels.shape,
        ));
    }
    let params = Params {
        rows,
        vocab,
        chunk: blocks(rows).1,
        add: 0,
        scale,
    };
    let [one, rows] = [Shape::from([1]), Shape::from([rows])];
    let outputs = tape.record(Loss { params }, &[logits, labels], &[one, rows, rows, rows])?;
    Ok(CrossEntropy {
        loss: outputs[0],
        row_losses: outputs[1],
    })
}

impl Op for Loss {
    fn name(&self) -> &'static str {
        "cross_entropy"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let (logits, labels) = (rec.value(x[0]), rec.value(x[1]));
        let (loss, row_losses) = (rec.value(y[0]), rec.value(y[1]));
        let (largest, sum) = (rec.value(y[2]), rec.value(y[3]));
        rec.dispatch(
            &kernels::CROSS_ENTROPY_FORWARD,
            self.params.clone(),
            &[logits, labels, row_losses, largest, sum],
            self.params.rows as usize,
        )?;
        let blocks = blocks(self.params.rows).0 as usize;
        let block_losses = rec.scratch("block losses", blocks);
        rec.dispatch(
            &kernels::CROSS_ENTROPY_FORWARD_BLOCKS,
            self.params.clone(),
            &[row_losses, block_losses],
            blocks,
        )?;
        rec.dispatch(
            &kernels::CROSS_ENTROPY_FORWARD_MEAN,
            self.params.clone(),
            &[block_losses, loss],
            1,
        )
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        if rec.out_grad(y[1]).is_some() {
            return Err(Error::Op {
                op: "cross_entropy",
                message: "the losses of single rows have no gradient; use the mean".into(),
            });
        }
        let (Some(d_loss), Some(d_logits)) = (rec.out_grad(y[0]), rec.grad(x[0])) else {
            return Ok(());
        };
        let params = Params {
            add: d_logits.add,
            ..self.params.clone()
        };
        let (logits, labels) = (rec.value(x[0]), rec.value(x[1]));
        let (largest, sum) = (rec.value(y[2]), rec.value(y[3]));
        rec.dispatch(
            &kernels::CROSS_ENTROPY_BACKWARD,
            params,
            &[logits, labels, largest, sum, d_loss, d_logits.arg],
            x[0].shape.len(),
        )
    }
}
