//! A linear layer whose rows go through different matrices: one for each expert.
//!
//! Rows are those of [`super::expert_sort`]: a tile has one expert, and tiles without one are left alone. The kernels are
//! `shaders/grouped_matmul.wgsl`, and `shaders/grouped_matmul_vec4.wgsl` for rows of whole vectors.

use super::expert_sort::Sorted;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, kernels};
use crate::params::ALIGNMENT;
use crate::plan::Arg;
use crate::shape::Shape;
use crate::tape::{Op, Recorder, Tape, Tensor};

crate::params! {
    /// Parameters of the kernels: the output is `[m, n]`, or as many matrices for `tn`; the sum has `k` terms.
    pub struct Params {
        /// Rows of the output.
        m: u32,
        /// Columns of the output.
        n: u32,
        /// Terms of the sum; `tn` has as many as its expert has rows.
        k: u32,
        /// Experts.
        experts: u32,
        /// Rows of a tile.
        tile: u32,
        /// Elements from one expert's matrix to the next.
        stride: u32,
        /// Add to the output instead of storing.
        add: u32,
    }
}

/// One of the three products: its plain kernel, and the one for rows of whole vectors.
type Product = [&'static Kernel; 2];

const NT: Product = [
    &kernels::GROUPED_MATMUL_NT,
    &kernels::GROUPED_MATMUL_VEC4_NT,
];
const NN: Product = [
    &kernels::GROUPED_MATMUL_NN,
    &kernels::GROUPED_MATMUL_VEC4_NN,
];
const TN: Product = [
    &kernels::GROUPED_MATMUL_TN,
    &kernels::GROUPED_MATMUL_VEC4_TN,
];

/// Record a product of which `matrices` outputs are computed. `row_lengths` are those of the matrices that are read or written
/// as vectors.
fn dispatch(
    rec: &mut Recorder,
    product: Product,
    params: Params,
    matrices: u32,
    row_lengths: [u32; 2],
    args: [Arg; 4],
) -> Result<()> {
    let vectors = row_lengths.iter().all(|length| length % 4 == 0);
    // The output is computed in square tiles.
    let tile = if vectors { 8 } else { 4 };
    let tiles = params.m.div_ceil(tile) as usize * params.n.div_ceil(tile) as usize;
    let kernel = product[usize::from(vectors)];
    rec.dispatch(kernel, params, &args, tiles * matrices as usize)
}

#[derive(Debug)]
struct GroupedLinear {
    params: Params,
}

/// `y[r] = W_e x[r]`, `e` the expert of row `r`: `x` `[rows, in]` to `[rows, out]`. `weights` are parameters `[out, in]`, one for
/// each expert, that were declared one after the other.
///
/// Rows of tiles without an expert are not computed: nothing may depend on them.
///
/// # Errors
/// If a shape does not fit, or the weights do not lie one after the other.
pub fn grouped_linear(
    tape: &mut Tape,
    x: Tensor,
    weights: &[Tensor],
    sorted: &Sorted,
) -> Result<Tensor> {
    let inputs = x.shape.last();
    let refuse = |message: String| {
        let op = "grouped_linear";
        Err(Error::Op { op, message })
    };
    if x.shape.rows() != sorted.rows {
        return Err(Error::shape(
            "grouped_linear",
            "x",
            ["rows sorted", "in"],
            x.shape,
        ));
    }
    let Some(first) = weights.first() else {
        return refuse("there are no experts".into());
    };
    let &[outputs, columns] = first.shape.dims() else {
        return Err(Error::shape(
            "grouped_linear",
            "weight",
            ["out", "in of x"],
            first.shape,
        ));
    };
    let same = weights.iter().all(|weight| weight.shape == first.shape);
    if columns != inputs || !same || weights.len() != sorted.experts as usize {
        let count = sorted.experts;
        return refuse(format!(
            "needs {count} weights [out, {inputs}], all of one shape"
        ));
    }
    let Ok(stride) = u32::try_from(first.shape.len().next_multiple_of(ALIGNMENT)) else {
        return refuse(format!("a weight {} is too large", first.shape));
    };
    let params = Params {
        m: sorted.rows,
        n: outputs,
        k: inputs,
        experts: sorted.experts,
        tile: super::expert_sort::TILE,
        stride,
        add: 0,
    };
    let op = GroupedLinear { params };
    let all = [&[x, sorted.tile_expert, sorted.places], weights].concat();
    Ok(tape.record(op, &all, &[Shape::from([sorted.rows, outputs])])?[0])
}

impl GroupedLinear {
    /// The range of all weights, and of their gradients.
    fn weights(&self, rec: &Recorder, x: &[Tensor]) -> Result<[Arg; 2]> {
        let (values, grads, offsets) = rec.span(&x[3..]);
        let apart = |(&offset, e): (&u32, u32)| Some(offset) == e.checked_mul(self.params.stride);
        if offsets.iter().zip(0..).all(apart) {
            return Ok([values, grads]);
        }
        Err(Error::Op {
            op: "grouped_linear",
            message: "the weights of the experts do not lie one after the other".into(),
        })
    }
}

impl Op for GroupedLinear {
    fn name(&self) -> &'static str {
        "grouped_linear"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let [weights, _] = self.weights(rec, x)?;
        let [input, tile_expert, y] = [x[0], x[1], y[0]].map(|tensor| rec.value(tensor));
        let lengths = [self.params.k; 2];
        let args = [tile_expert, input, weights, y];
        dispatch(rec, NT, self.params.clone(), 1, lengths, args)
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let Some(dy) = rec.out_grad(y[0]) else {
            return Ok(());
        };
        let [weights, dweights] = self.weights(rec, x)?;
        let [input, tile_expert, places] = [x[0], x[1], x[2]].map(|tensor| rec.value(tensor));
        let Params { n, k, experts, .. } = self.params;
        if let Some(dx) = rec.grad(x[0]) {
            let params = Params {
                n: k,
                k: n,
                add: dx.add,
                ..self.params.clone()
            };
            let args = [tile_expert, dy, weights, dx.arg];
            dispatch(rec, NN, params, 1, [k, n], args)?;
        }
        let mut add = None;
        for &weight in &x[3..] {
            add = rec.grad(weight).map(|grad| grad.add);
        }
        let Some(add) = add else {
            return Ok(());
        };
        let params = Params {
            m: n,
            n: k,
            k: self.params.m,
            add,
            ..self.params.clone()
        };
        let args = [places, dy, input, dweights];
        dispatch(rec, TN, params, experts, [k, n], args)
    }
}
