//! Coefficients of streams: `c = bias + scale f(r u)`, with `f` the hyperbolic tangent or nothing.
//!
//! `u` are products of the streams with learned weights and `r` the factors that normalise the streams
//! ([`super::inverse_rms`]). Hyper-connections read, mix and write with such coefficients (section 4.7 of the checkpoint
//! format); mHC computes its raw coefficients so (4.8). The kernel is `shaders/stream_coefficients.wgsl`.

use super::column_sum::{self, blocks, column_sum};
use crate::error::{Error, Result};
use crate::kernel::kernels;
use crate::shape::Shape;
use crate::tape::{Op, Recorder, Tape, Tensor};

crate::params! {
    /// Parameters of the kernels.
    pub struct Params {
        /// Tokens.
        rows: u32,
        /// Coefficients of a token.
        columns: u32,
        /// Columns that share a factor.
        part: u32,
        /// Columns that share a scale; the last scale has the rest.
        group: u32,
        /// Number of scales.
        scales: u32,
        /// 1: `f` is tanh, 0: the identity.
        squash: u32,
        /// 0: the coefficients are the bias.
        dynamic: u32,
        /// Rows per block of `backward_params`.
        chunk: u32,
        /// Add to the gradient instead of storing.
        add: u32,
    }
}

/// What makes coefficients depend on the token.
#[derive(Clone, Copy, Debug)]
pub struct Dynamic {
    /// Products of the streams with weights: as many as coefficients, in their order.
    pub dots: Tensor,
    /// What normalises them: a factor for each token, or for each of several equal parts of a token's coefficients.
    pub factors: Tensor,
    /// A parameter, one scale for each `group` coefficients of a token; the last has the rest.
    pub scale: Tensor,
    /// Coefficients that share a scale.
    pub group: u32,
    /// Whether `f` is tanh.
    pub squash: bool,
}

#[derive(Debug)]
struct StreamCoefficients {
    params: Params,
}

/// Coefficients `[rows, n]` from the parameter `bias` of `n` elements, the same for all rows or `dynamic`.
///
/// # Errors
/// If a shape does not fit.
pub fn stream_coefficients(
    tape: &mut Tape,
    rows: u32,
    bias: Tensor,
    dynamic: Option<&Dynamic>,
) -> Result<Tensor> {
    let columns = bias.shape.rows() * bias.shape.last();
    let mut params = Params {
        rows,
        columns,
        part: columns,
        group: columns,
        scales: 0,
        squash: 0,
        dynamic: u32::from(dynamic.is_some()),
        chunk: blocks(rows).1,
        add: 0,
    };
    let mut inputs = vec![bias];
    if let Some(how) = dynamic {
        let wrong =
            |name, expected: Shape, got| Error::shape("stream_coefficients", name, expected, got);
        if how.dots.shape.len() != rows as usize * columns as usize {
            return Err(wrong("dots", [rows, columns].into(), how.dots.shape));
        }
        let factors = how.factors.shape.rows() * how.factors.shape.last();
        let parts = factors / rows;
        if parts == 0 || parts * rows != factors || !columns.is_multiple_of(parts) {
            return Err(wrong("factors", [rows].into(), how.factors.shape));
        }
        let scales = how.scale.shape.rows() * how.scale.shape.last();
        if how.group == 0 || (scales - 1) * how.group >= columns {
            let most = columns.div_ceil(how.group.max(1));
            return Err(wrong("scale", [most].into(), how.scale.shape));
        }
        params.part = columns / parts;
        params.group = how.group;
        params.scales = scales;
        params.squash = u32::from(how.squash);
        inputs.extend([how.dots, how.factors, how.scale]);
    }
    let shape = Shape::from([rows, columns]);
    Ok(tape.record(StreamCoefficients { params }, &inputs, &[shape])?[0])
}

impl Op for StreamCoefficients {
    fn name(&self) -> &'static str {
        "stream_coefficients"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        // Bindings cannot be empty: for what is absent the bias stands in, and is not read.
        let or_bias = |number: usize| rec.value(*x.get(number).unwrap_or(&x[0]));
        let (u, r, scale) = (or_bias(1), or_bias(2), or_bias(3));
        let args = [u, r, scale, rec.value(x[0]), rec.value(y[0])];
        let params = self.params.clone();
        let items = params.rows as usize * params.columns as usize;
        rec.dispatch(&kernels::STREAM_COEFFICIENTS_FORWARD, params, &args, items)
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let Some(dc) = rec.out_grad(y[0]) else {
            return Ok(());
        };
        let (rows, columns) = (self.params.rows as usize, self.params.columns as usize);
        let adding = |add| Params {
            add,
            ..self.params.clone()
        };
        let count = blocks(self.params.rows).0;
        let Some(dbias) = rec.grad(x[0]) else {
            return Err(not_parameters());
        };
        let &[_, dots, factors, scales] = x else {
            let partial = rec.scratch("partial bias", count as usize * columns);
            let kernel = &kernels::STREAM_COEFFICIENTS_BACKWARD_PARAMS;
            let items = count as usize * columns;
            rec.dispatch(kernel, self.params.clone(), &[dc, dc, dc, partial], items)?;
            let sum = column_sum::Params {
                rows: count,
                dim: self.params.columns,
                add: dbias.add,
            };
            return column_sum(rec, partial, sum, dbias.arg);
        };
        let (u, r, scale) = (rec.value(dots), rec.value(factors), rec.value(scales));
        if let Some(du) = rec.grad(dots) {
            rec.dispatch(
                &kernels::STREAM_COEFFICIENTS_BACKWARD_DOTS,
                adding(du.add),
                &[u, r, scale, dc, du.arg],
                rows * columns,
            )?;
        }
        if let Some(dr) = rec.grad(factors) {
            rec.dispatch(
                &kernels::STREAM_COEFFICIENTS_BACKWARD_FACTORS,
                adding(dr.add),
                &[u, r, scale, dc, dr.arg],
                rows * columns / self.params.part as usize,
            )?;
        }
        let Some(dscale) = rec.grad(scales).filter(|scale| scale.add & dbias.add == 1) else {
            return Err(not_parameters());
        };
        let partial = rec.scratch("partial coefficients", count as usize * 2 * columns);
        rec.dispatch(
            &kernels::STREAM_COEFFICIENTS_BACKWARD_PARAMS,
            self.params.clone(),
            &[u, r, dc, partial],
            count as usize * 2 * columns,
        )?;
        let sums = rec.scratch("sums of coefficients", 2 * columns);
        let sum = column_sum::Params {
            rows: count,
            dim: 2 * self.params.columns,
            add: 0,
        };
        column_sum(rec, partial, sum, sums)?;
        rec.dispatch(
            &kernels::STREAM_COEFFICIENTS_BACKWARD_PARAMS_SUM,
            self.params.clone(),
            &[sums, dbias.arg, dscale.arg],
            columns + self.params.scales as usize,
        )
    }
}

/// Gradients of parameters are cleared once a step; the last kernel relies on that.
fn not_parameters() -> Error {
    Error::Op {
        op: "stream_coefficients",
        message: "bias and scale must be parameters".into(),
    }
}
