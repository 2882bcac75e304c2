//! Root-mean-square normalisation with a learned gain.
//!
//! `y = x / sqrt(mean(x^2) + eps) * gain`, along the last dimension. The kernel is `shaders/rms_norm.wgsl`; the gradient
//! is derived there.

use super::column_sum::{self, blocks, column_sum};
use crate::error::{Error, Result};
use crate::kernel::kernels;
use crate::shape::Shape;
use crate::tape::{Op, Recorder, Tape, Tensor};

crate::params! {
    /// Parameters of the kernels.
    pub struct Params {
        /// Rows of `x`.
        rows: u32,
        /// Length of a row.
        dim: u32,
        /// Rows per block of `backward_gain`.
        chunk: u32,
        /// Add to `dx` instead of storing.
        add: u32,
        /// Added to the mean square.
        eps: f64,
    }
}

#[derive(Debug)]
struct RmsNorm {
    params: Params,
}

/// Normalise the last dimension of `x` `[.., dim]` and scale it by `gain` `[dim]`. Returns the shape of `x`.
///
/// # Errors
/// If `gain` has not the length of a row.
pub fn rms_norm(tape: &mut Tape, x: Tensor, gain: Tensor, eps: f64) -> Result<Tensor> {
    let (rows, dim) = (x.shape.rows(), x.shape.last());
    if gain.shape.len() != dim as usize {
        return Err(Error::shape("rms_norm", "gain", [dim], gain.shape));
    }
    let params = Params {
        rows,
        dim,
        chunk: blocks(rows).1,
        add: 0,
        eps,
    };
    Ok(tape.record(
        RmsNorm { params },
        &[x, gain],
        &[x.shape, Shape::from([rows])],
    )?[0])
}

impl Op for RmsNorm {
    fn name(&self) -> &'static str {
        "rms_norm"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let args = [
            rec.value(x[0]),
            rec.value(x[1]),
            rec.value(y[0]),
            rec.value(y[1]),
        ];
        rec.dispatch(
            &kernels::RMS_NORM_FORWARD,
            self.params.clone(),
            &args,
            self.params.rows as usize,
        )
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let Some(dy) = rec.out_grad(y[0]) else {
            return Ok(());
        };
        let (input, gain, r) = (rec.value(x[0]), rec.value(x[1]), rec.value(y[1]));
        if let Some(dx) = rec.grad(x[0]) {
            let params = Params {
                add: dx.add,
                ..self.params.clone()
            };
            rec.dispatch(
                &kernels::RMS_NORM_BACKWARD,
                params,
                &[input, gain, r, dy, dx.arg],
                self.params.rows as usize,
            )?;
        }
        if let Some(dgain) = rec.grad(x[1]) {
            let (count, dim) = (blocks(self.params.rows).0, self.params.dim);
            let partial = rec.scratch("partial gain", (count * dim) as usize);
            let items = (count * dim) as usize;
            rec.dispatch(
                &kernels::RMS_NORM_BACKWARD_GAIN,
                self.params.clone(),
                &[input, r, dy, partial],
                items,
            )?;
            column_sum(
                rec,
                partial,
                column_sum::Params {
                    rows: count,
                    dim,
                    add: dgain.add,
                },
                dgain.arg,
            )?;
        }
        Ok(())
    }
}
