//! Mixing the streams of a row with a matrix of weights: `out_j = sum_i w_(i,j) x_i`.
//!
//! All that hyper-connections and mHC do with their streams is this: copying an embedding to `n` streams is a mix of 1 to
//! `n` with weights 1, reading is a mix of `n` to 1, writing is a mix of `n` to `n` plus one of 1 to `n`, and the read-out
//! is a sum or mean. The streams of a token lie one after the other in one row. The kernels are in
//! `shaders/stream_mix.wgsl`.

use crate::error::{Error, Result};
use crate::kernel::kernels;
use crate::shape::Shape;
use crate::tape::{Op, Recorder, Tape, Tensor};

crate::params! {
    /// Parameters of the kernels.
    pub struct Params {
        /// Tokens.
        rows: u32,
        /// Length of a stream.
        dim: u32,
        /// Streams that are read.
        inputs: u32,
        /// Streams that are written.
        outputs: u32,
        /// Elements from a weight to that of the next stream read.
        stride_in: u32,
        /// Elements from a weight to that of the next stream written.
        stride_out: u32,
        /// Elements from the weights of a row to those of the next; 0 if all rows have the same.
        stride_row: u32,
        /// Add to the result instead of storing.
        add: u32,
    }
}

/// How the weights of a row lie. With one stream on either side both mean the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// `[from, to]`: a row of the matrix for each stream that is read (hyper-connections).
    #[default]
    FromTo,
    /// `[to, from]`: a row of the matrix for each stream that is written (mHC).
    ToFrom,
}

/// One summand of a mix.
#[derive(Clone, Copy, Debug)]
pub struct Term {
    /// The streams that are read, `[rows, from dim]`.
    pub x: Tensor,
    /// `[rows, from to]`, or `[1, from to]` for weights that all rows share; those cannot be trained.
    pub weights: Tensor,
    /// How the weights lie.
    pub layout: Layout,
}

impl Term {
    /// A term whose weights lie as `[from, to]`.
    #[must_use]
    pub fn new(x: Tensor, weights: Tensor) -> Self {
        Self {
            x,
            weights,
            layout: Layout::FromTo,
        }
    }
}

#[derive(Debug)]
struct StreamMix {
    /// One for each term, whose `x` and `weights` are inputs `2 i` and `2 i + 1`.
    terms: Vec<Params>,
}

/// Sum of the terms, each mixed to `to` streams: `[rows, to dim]`.
///
/// # Errors
/// If there is no term, or the shapes of a term do not fit `to` or the other terms.
pub fn stream_mix(tape: &mut Tape, terms: &[Term], to: u32) -> Result<Tensor> {
    let mut all: Vec<Params> = Vec::new();
    let mut inputs = Vec::new();
    for term in terms {
        let (rows, len) = (term.x.shape.rows(), term.x.shape.last());
        let (weight_rows, weights) = (term.weights.shape.rows(), term.weights.shape.last());
        let from = weights / to.max(1);
        let shared = weight_rows == 1 && rows != 1;
        if from == 0 || from * to != weights || !(shared || weight_rows == rows) {
            let expected = ["rows of x or 1", "a multiple of the streams written"];
            let got = term.weights.shape;
            return Err(Error::shape("stream_mix", "weights", expected, got));
        }
        let dim = len / from;
        let fits = |other: &Params| (other.rows, other.dim) == (rows, dim);
        if dim * from != len || !all.first().is_none_or(fits) {
            let dim = all.first().map_or(dim.max(1), |first| first.dim);
            let rows = all.first().map_or(rows, |first| first.rows);
            let expected = Shape::from([rows, from * dim]);
            return Err(Error::shape("stream_mix", "x", expected, term.x.shape));
        }
        let (stride_in, stride_out) = match term.layout {
            Layout::FromTo => (to, 1),
            Layout::ToFrom => (1, from),
        };
        all.push(Params {
            rows,
            dim,
            inputs: from,
            outputs: to,
            stride_in,
            stride_out,
            stride_row: if shared { 0 } else { weights },
            add: 0,
        });
        inputs.extend([term.x, term.weights]);
    }
    let Some(first) = all.first() else {
        return Err(Error::Op {
            op: "stream_mix",
            message: "there is nothing to mix".into(),
        });
    };
    let shape = Shape::from([first.rows, to * first.dim]);
    Ok(tape.record(StreamMix { terms: all }, &inputs, &[shape])?[0])
}

impl Op for StreamMix {
    fn name(&self) -> &'static str {
        "stream_mix"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        for (number, (params, x)) in self.terms.iter().zip(x.chunks_exact(2)).enumerate() {
            let args = [rec.value(x[0]), rec.value(x[1]), rec.value(y[0])];
            let params = Params {
                add: u32::from(number > 0),
                ..params.clone()
            };
            let items = params.rows as usize * (params.outputs * params.dim) as usize;
            rec.dispatch(&kernels::STREAM_MIX_FORWARD, params, &args, items)?;
        }
        Ok(())
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let Some(dout) = rec.out_grad(y[0]) else {
            return Ok(());
        };
        for (params, x) in self.terms.iter().zip(x.chunks_exact(2)) {
            let rows = params.rows as usize;
            if let Some(dweights) = rec.grad(x[1]) {
                if params.stride_row == 0 {
                    return Err(Error::Op {
                        op: "stream_mix",
                        message: "weights that all rows share cannot be trained".into(),
                    });
                }
                let args = [rec.value(x[0]), dout, dweights.arg];
                let params = Params {
                    add: dweights.add,
                    ..params.clone()
                };
                let items = rows * (params.inputs * params.outputs) as usize;
                rec.dispatch(&kernels::STREAM_MIX_BACKWARD_WEIGHTS, params, &args, items)?;
            }
            if let Some(dx) = rec.grad(x[0]) {
                let args = [dout, rec.value(x[1]), dx.arg];
                let params = Params {
                    inputs: params.outputs,
                    outputs: params.inputs,
                    stride_in: params.stride_out,
                    stride_out: params.stride_in,
                    add: dx.add,
                    ..params.clone()
                };
                let items = rows * (params.outputs * params.dim) as usize;
                rec.dispatch(&kernels::STREAM_MIX_FORWARD, params, &args, items)?;
            }
        }
        Ok(())
    }
}
