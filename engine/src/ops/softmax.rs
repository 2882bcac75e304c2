//! Softmax of one short vector: weights that all tokens share, from learned logits.
//!
//! The kernel is `shaders/softmax.wgsl`; the gradient is written there.

use crate::error::Result;
use crate::kernel::kernels;
use crate::tape::{Op, Recorder, Tape, Tensor};

crate::params! {
    /// Parameters of the kernels.
    pub struct Params {
        /// Elements.
        len: u32,
        /// Add to the gradient instead of storing.
        add: u32,
    }
}

#[derive(Debug)]
struct Softmax;

/// `exp(z - max z)`, divided by its sum over all elements of `z`. Returns the shape of `z`. Meant for a few dozen numbers.
///
/// # Errors
/// If a kernel call is malformed.
pub fn softmax(tape: &mut Tape, z: Tensor) -> Result<Tensor> {
    Ok(tape.record(Softmax, &[z], &[z.shape])?[0])
}

impl Op for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let len = x[0].shape.len();
        let params = Params {
            len: len as u32,
            add: 0,
        };
        let args = [rec.value(x[0]), rec.value(y[0])];
        rec.dispatch(&kernels::SOFTMAX_FORWARD, params, &args, len)
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let (Some(da), Some(dz)) = (rec.out_grad(y[0]), rec.grad(x[0])) else {
            return Ok(());
        };
        let len = x[0].shape.len();
        let params = Params {
            len: len as u32,
            add: dz.add,
        };
        let args = [rec.value(y[0]), da, dz.arg];
        rec.dispatch(&kernels::SOFTMAX_BACKWARD, params, &args, len)
    }
}
