//! The sum of two tensors.

use super::copy;
use crate::error::{Error, Result};
use crate::kernel::kernels;
use crate::tape::{Op, Recorder, Tape, Tensor};

crate::params! {
    /// Parameters of the kernel.
    pub struct Params {
        /// Elements.
        len: u32,
    }
}

#[derive(Debug)]
struct Add;

/// `a + b`, element by element. Both have the same number of elements; the shape of `a` is returned.
///
/// # Errors
/// If the lengths differ.
pub fn add(tape: &mut Tape, a: Tensor, b: Tensor) -> Result<Tensor> {
    if a.shape.len() != b.shape.len() {
        return Err(Error::shape("add", "b", a.shape, b.shape));
    }
    Ok(tape.record(Add, &[a, b], &[a.shape])?[0])
}

impl Op for Add {
    fn name(&self) -> &'static str {
        "add"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let len = y[0].shape.len();
        let args = [rec.value(x[0]), rec.value(x[1]), rec.value(y[0])];
        rec.dispatch(
            &kernels::ADD_FORWARD,
            Params { len: len as u32 },
            &args,
            len,
        )
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let Some(dy) = rec.out_grad(y[0]) else {
            return Ok(());
        };
        let len = y[0].shape.len();
        for &input in x {
            if let Some(grad) = rec.grad(input) {
                let params = copy::Params {
                    len: len as u32,
                    add: grad.add,
                };
                rec.dispatch(&kernels::COPY_FORWARD, params, &[dy, grad.arg], len)?;
            }
        }
        Ok(())
    }
}
