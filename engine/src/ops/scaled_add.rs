//! A sum with one learned factor.
//!
//! `x = h + scale o`: how gated Delta attention residuals add what they retrieved (checkpoint format, 4.3). The kernel is
//! `shaders/scaled_add.wgsl`.

use super::column_sum::{self, column_sum};
use crate::error::{Error, Result};
use crate::kernel::kernels;
use crate::tape::{Op, Recorder, Tape, Tensor};

crate::params! {
    /// Parameters of the kernels.
    pub struct Params {
        /// Elements of `h`.
        len: u32,
        /// Partial sums of `backward_scale`.
        count: u32,
        /// Add to the gradient instead of storing it.
        add: u32,
    }
}

#[derive(Debug)]
struct ScaledAdd {
    params: Params,
}

/// `h + scale o`, for `h` and `o` of one shape and `scale` `[1]`. `h` and `o` may be the same tensor.
///
/// # Errors
/// If the shapes of `h` and `o` differ, or `scale` is not one number.
pub fn scaled_add(tape: &mut Tape, h: Tensor, o: Tensor, scale: Tensor) -> Result<Tensor> {
    if h.shape.len() != o.shape.len() {
        return Err(Error::shape("scaled_add", "o", h.shape, o.shape));
    }
    if scale.shape.len() != 1 {
        return Err(Error::shape("scaled_add", "scale", [1], scale.shape));
    }
    let len = h.shape.rows() * h.shape.last();
    // About as many partial sums as terms in each, by shape alone.
    let chunk = len.isqrt().max(64);
    let params = Params {
        len,
        count: len.div_ceil(chunk),
        add: 0,
    };
    Ok(tape.record(ScaledAdd { params }, &[h, o, scale], &[h.shape])?[0])
}

impl Op for ScaledAdd {
    fn name(&self) -> &'static str {
        "scaled_add"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let args = [
            rec.value(x[0]),
            rec.value(x[1]),
            rec.value(x[2]),
            rec.value(y[0]),
        ];
        let items = self.params.len as usize;
        rec.dispatch(
            &kernels::SCALED_ADD_FORWARD,
            self.params.clone(),
            &args,
            items,
        )
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let Some(dx) = rec.out_grad(y[0]) else {
            return Ok(());
        };
        let (o, scale) = (rec.value(x[1]), rec.value(x[2]));
        let items = self.params.len as usize;
        let adding = |add| Params {
            add,
            ..self.params.clone()
        };
        if let Some(dh) = rec.grad(x[0]) {
            let args = [dx, dh.arg];
            rec.dispatch(
                &kernels::SCALED_ADD_BACKWARD_H,
                adding(dh.add),
                &args,
                items,
            )?;
        }
        if let Some(d_o) = rec.grad(x[1]) {
            let args = [dx, scale, d_o.arg];
            rec.dispatch(
                &kernels::SCALED_ADD_BACKWARD_O,
                adding(d_o.add),
                &args,
                items,
            )?;
        }
        if let Some(dscale) = rec.grad(x[2]) {
            let count = self.params.count;
            let partial = rec.scratch("partial scale", count as usize);
            rec.dispatch(
                &kernels::SCALED_ADD_BACKWARD_SCALE,
                self.params.clone(),
                &[dx, o, partial],
                count as usize,
            )?;
            let sum = column_sum::Params {
                rows: count,
                dim: 1,
                add: dscale.add,
            };
            column_sum(rec, partial, sum, dscale.arg)?;
        }
        Ok(())
    }
}
