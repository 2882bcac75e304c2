//! Products with a weight matrix: `y = x W^T` and its gradients.
//!
//! `W` is `[out, in]`, as in the checkpoint. The kernels are `shaders/matmul.wgsl`, one entry point for each of the three
//! products of a training step.

use super::column_sum::{self, column_sum};
use crate::error::{Error, Result};
use crate::kernel::kernels;
use crate::shape::Shape;
use crate::tape::{Op, Recorder, Tape, Tensor};

/// Terms in one chain of the sum over tokens. Longer sums are cut into slabs of this many, for precision and so that a GPU
/// has more to do at once.
const SLAB: u32 = 1024;

crate::params! {
    /// Parameters of the kernels: the output is `[m, n]`, the sum has `k` terms.
    pub struct Params {
        /// Rows of the output.
        m: u32,
        /// Columns of the output.
        n: u32,
        /// Terms of the sum.
        k: u32,
        /// Terms per slab of `tn`.
        slab: u32,
        /// Add to the output instead of storing.
        add: u32,
    }
}

impl Params {
    /// The output is written in tiles of 4 x 4.
    fn tiles(&self) -> usize {
        self.m.div_ceil(4) as usize * self.n.div_ceil(4) as usize
    }
}

#[derive(Debug)]
struct Linear {
    rows: u32,
    inputs: u32,
    outputs: u32,
}

/// `y = x W^T` for `x` `[.., in]` and `weight` `[out, in]`. Returns `[rows, out]`, where `rows` is the product of all
/// dimensions of `x` but the last.
///
/// # Errors
/// If `weight` is not a matrix with as many columns as `x`.
pub fn linear(tape: &mut Tape, x: Tensor, weight: Tensor) -> Result<Tensor> {
    let (rows, inputs) = (x.shape.rows(), x.shape.last());
    let wrong = |shape| Error::shape("linear", "weight", ["out", "in of x"], shape);
    let &[outputs, columns] = weight.shape.dims() else {
        return Err(wrong(weight.shape));
    };
    if columns != inputs {
        return Err(wrong(weight.shape));
    }
    let op = Linear {
        rows,
        inputs,
        outputs,
    };
    Ok(tape.record(op, &[x, weight], &[Shape::from([rows, outputs])])?[0])
}

impl Op for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let params = Params {
            m: self.rows,
            n: self.outputs,
            k: self.inputs,
            slab: 0,
            add: 0,
        };
        let items = params.tiles();
        let args = [rec.value(x[0]), rec.value(x[1]), rec.value(y[0])];
        rec.dispatch(&kernels::MATMUL_NT, params, &args, items)
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let Some(dy) = rec.out_grad(y[0]) else {
            return Ok(());
        };
        let (input, weight) = (rec.value(x[0]), rec.value(x[1]));
        if let Some(dx) = rec.grad(x[0]) {
            let params = Params {
                m: self.rows,
                n: self.inputs,
                k: self.outputs,
                slab: 0,
                add: dx.add,
            };
            let items = params.tiles();
            rec.dispatch(&kernels::MATMUL_NN, params, &[dy, weight, dx.arg], items)?;
        }
        if let Some(dw) = rec.grad(x[1]) {
            let slabs = self.rows.div_ceil(SLAB);
            let mut params = Params {
                m: self.outputs,
                n: self.inputs,
                k: self.rows,
                slab: SLAB,
                add: dw.add,
            };
            let items = params.tiles() * slabs as usize;
            if slabs == 1 {
                return rec.dispatch(&kernels::MATMUL_TN, params, &[dy, input, dw.arg], items);
            }
            params.add = 0;
            let dim = self.outputs * self.inputs;
            let partial = rec.scratch("partial weight", slabs as usize * dim as usize);
            rec.dispatch(&kernels::MATMUL_TN, params, &[dy, input, partial], items)?;
            let params = column_sum::Params {
                rows: slabs,
                dim,
                add: dw.add,
            };
            column_sum(rec, partial, params, dw.arg)?;
        }
        Ok(())
    }
}
