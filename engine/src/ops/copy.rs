//! A copy of a tensor, with gradient: gives memory of its own to something that has none to give away.

use crate::error::Result;
use crate::kernel::kernels;
use crate::tape::{Op, Recorder, Tape, Tensor};

crate::params! {
    /// Parameters of the kernel.
    pub struct Params {
        /// Elements.
        len: u32,
        /// Add instead of storing.
        add: u32,
    }
}

#[derive(Debug)]
struct Copy;

/// `y = x`, same shape.
///
/// # Errors
/// If `x` is empty.
pub fn copy(tape: &mut Tape, x: Tensor) -> Result<Tensor> {
    Ok(tape.record(Copy, &[x], &[x.shape])?[0])
}

impl Op for Copy {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let len = x[0].shape.len();
        let args = [rec.value(x[0]), rec.value(y[0])];
        rec.dispatch(
            &kernels::COPY_FORWARD,
            Params {
                len: len as u32,
                add: 0,
            },
            &args,
            len,
        )
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let (Some(dy), Some(dx)) = (rec.out_grad(y[0]), rec.grad(x[0])) else {
            return Ok(());
        };
        let len = x[0].shape.len();
        rec.dispatch(
            &kernels::COPY_FORWARD,
            Params {
                len: len as u32,
                add: dx.add,
            },
            &[dy, dx.arg],
            len,
        )
    }
}
