//! The factor of a root-mean-square norm: `r = 1 / sqrt(mean(x^2) + eps)`.
//!
//! Hyper-connections and mHC need products of normalised streams with a few weights. Multiplying first and scaling the
//! product by `r` gives the same value, and the normalised streams are never stored. The kernel is
//! `shaders/inverse_rms.wgsl`.

use crate::error::Result;
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
        /// Add to `dx` instead of storing.
        add: u32,
        /// Added to the mean square.
        eps: f64,
    }
}

#[derive(Debug)]
struct InverseRms {
    params: Params,
}

/// `[rows]`: the factor for each row of `x` `[.., dim]`.
///
/// # Errors
/// If a kernel call is malformed.
pub fn inverse_rms(tape: &mut Tape, x: Tensor, eps: f64) -> Result<Tensor> {
    let (rows, dim) = (x.shape.rows(), x.shape.last());
    let params = Params {
        rows,
        dim,
        add: 0,
        eps,
    };
    Ok(tape.record(InverseRms { params }, &[x], &[Shape::from([rows])])?[0])
}

impl Op for InverseRms {
    fn name(&self) -> &'static str {
        "inverse_rms"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let args = [rec.value(x[0]), rec.value(y[0])];
        let params = self.params.clone();
        rec.dispatch(
            &kernels::INVERSE_RMS_FORWARD,
            params,
            &args,
            self.params.rows as usize,
        )
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let (Some(dr), Some(dx)) = (rec.out_grad(y[0]), rec.grad(x[0])) else {
            return Ok(());
        };
        let params = Params {
            add: dx.add,
            ..self.params.clone()
        };
        let args = [rec.value(x[0]), rec.value(y[0]), dr, dx.arg];
        let items = self.params.rows as usize * self.params.dim as usize;
        rec.dispatch(&kernels::INVERSE_RMS_BACKWARD, params, &args, items)
    }
}
