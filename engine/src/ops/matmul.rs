//! Products with a weight matrix: `y = x W^T` and its gradients.
//!
//! `W` is `[out, in]`, as in the checkpoint. The kernels are `shaders/matmul.wgsl`, one entry point for each of the three
//! products of a training step, and `shaders/matmul_vec4.wgsl`, which computes the same where rows have whole vectors, and
//! `shaders/matmul_wide.wgsl`, the latter with larger tiles for software drivers.

use super::column_sum::{self, column_sum};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, kernels};
use crate::plan::Arg;
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

/// One of the three products: its plain kernel, and those for rows of whole vectors, with small and with large tiles.
type Product = [&'static Kernel; 3];

const NT: Product = [
    &kernels::MATMUL_NT,
    &kernels::MATMUL_VEC4_NT,
    &kernels::MATMUL_WIDE_NT,
];
const NN: Product = [
    &kernels::MATMUL_NN,
    &kernels::MATMUL_VEC4_NN,
    &kernels::MATMUL_WIDE_NN,
];
const TN: Product = [
    &kernels::MATMUL_TN,
    &kernels::MATMUL_VEC4_TN,
    &kernels::MATMUL_WIDE_TN,
];

/// A kernel and its invocations.
type Call = (&'static Kernel, usize);

/// The kernel of a product of which `slabs` outputs are computed, and the one with large tiles if they are of use.
/// `row_lengths` as in [`dispatch`].
fn choose(
    product: Product,
    params: &Params,
    slabs: u32,
    row_lengths: [u32; 2],
) -> (Call, Option<Call>) {
    // The output is computed in square tiles.
    let call = |kernel, tile| {
        let tiles = params.m.div_ceil(tile) as usize * params.n.div_ceil(tile) as usize;
        (kernel, tiles * slabs as usize)
    };
    let [plain, vectors, wide] = product;
    if row_lengths.iter().any(|length| length % 4 != 0) {
        return (call(plain, 4), None);
    }
    let large = params.m >= 16 && params.n >= 16;
    (call(vectors, 8), large.then(|| call(wide, 16)))
}

/// Record `c[s] = a[s]^T b[s]` for every `s` below `count`, without gradient. `a` is `[count, k, m]`, `b` `[count, k, n]`, `c`
/// `[count, m, n]`: the slabs of the product that sums over tokens, not added up.
pub(crate) fn stacked_tn(
    tape: &mut Tape,
    count: u32,
    [m, n, k]: [u32; 3],
    args: [Tensor; 3],
) -> Result<()> {
    let params = Params {
        m,
        n,
        k: count * k,
        slab: k,
        add: 0,
    };
    let ((kernel, items), large) = choose(TN, &params, count, [m, n]);
    tape.dispatch(kernel, params, &args, items)?;
    if let Some((kernel, items)) = large {
        tape.or_large(kernel, items);
    }
    Ok(())
}

/// Record a product of which `slabs` outputs are computed. `row_lengths` are those of the matrices that are read or written
/// as vectors.
fn dispatch(
    rec: &mut Recorder,
    product: Product,
    params: Params,
    slabs: u32,
    row_lengths: [u32; 2],
    args: [Arg; 3],
) -> Result<()> {
    let ((kernel, items), large) = choose(product, &params, slabs, row_lengths);
    rec.dispatch(kernel, params, &args, items)?;
    if let Some((kernel, items)) = large {
        rec.or_large(kernel, items);
    }
    Ok(())
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
        let args = [rec.value(x[0]), rec.value(x[1]), rec.value(y[0])];
        dispatch(rec, NT, params, 1, [self.inputs; 2], args)
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let Some(dy) = rec.out_grad(y[0]) else {
            return Ok(());
        };
        let (input, weight) = (rec.value(x[0]), rec.value(x[1]));
        let row_lengths = [self.inputs, self.outputs];
        if let Some(dx) = rec.grad(x[0]) {
            let params = Params {
                m: self.rows,
                n: self.inputs,
                k: self.outputs,
                slab: 0,
                add: dx.add,
            };
            dispatch(rec, NN, params, 1, row_lengths, [dy, weight, dx.arg])?;
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
            if slabs == 1 {
                return dispatch(rec, TN, params, 1, row_lengths, [dy, input, dw.arg]);
            }
            params.add = 0;
            let dim = self.outputs * self.inputs;
            let partial = rec.scratch("partial weight", slabs as usize * dim as usize);
            dispatch(rec, TN, params, slabs, row_lengths, [dy, input, partial])?;
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
