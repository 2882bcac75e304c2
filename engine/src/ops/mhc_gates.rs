//! Gates of mHC from its raw coefficients: read weights, write strengths, and a mixing matrix whose rows sum to one.
//!
//! The equations are those of section 4.8 of the checkpoint format. The iterations of Sinkhorn and Knopp are differentiated
//! one by one: they have not converged when the matrix is near the identity, so the gradient of the limit would be another
//! (section 2.2 of the notes on residual mechanisms). The kernel is `shaders/mhc_gates.wgsl`; the gradient stands there.

use crate::error::{Error, Result};
use crate::kernel::kernels;
use crate::shape::Shape;
use crate::tape::{Op, Recorder, Tape, Tensor};

crate::params! {
    /// Parameters of the kernels.
    pub struct Params {
        /// Tokens.
        rows: u32,
        /// Streams, `n`.
        streams: u32,
        /// Iterations; 0 is the closed form for two streams.
        iterations: u32,
        /// Whether something depends on `pre`.
        has_pre: u32,
        /// Whether something depends on `post`.
        has_post: u32,
        /// Whether something depends on `mix`.
        has_mix: u32,
        /// Add to the gradient instead of storing.
        add: u32,
    }
}

/// The most streams: a matrix of them is kept in fixed memory.
pub const MAX_STREAMS: u32 = 8;

/// Raw coefficients of the matrix are clamped to plus and minus this.
pub const LIMIT: f64 = 30.0;

/// How the mixing matrix is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Projection {
    /// This many times, at least once, every column and then every row is divided by its sum.
    Sinkhorn(u32),
    /// `[[a, 1 - a], [1 - a, a]]`: what Sinkhorn converges to with two streams.
    Exact2,
}

/// The gates of a site.
#[derive(Clone, Copy, Debug)]
pub struct MhcGates {
    /// `[rows, n]`, in (0, 1).
    pub pre: Tensor,
    /// `[rows, n]`, in (0, 2).
    pub post: Tensor,
    /// `[rows, n n]`: `mix[i, j]` is the weight of the old stream `j` in the new stream `i`.
    pub mix: Tensor,
}

#[derive(Debug)]
struct Gates {
    params: Params,
}

/// Gates of `n = streams` streams from `raw` `[rows, n n + 2 n]`: `n` of the read, `n` of the write, `n n` of the matrix.
///
/// # Errors
/// If `raw` has another shape, there are more than [`MAX_STREAMS`] streams, or the projection does not fit their number.
pub fn mhc_gates(
    tape: &mut Tape,
    raw: Tensor,
    streams: u32,
    projection: Projection,
) -> Result<MhcGates> {
    let rows = raw.shape.rows();
    if raw.shape.last() != streams * (streams + 2) {
        let expected = Shape::from([rows, streams * (streams + 2)]);
        return Err(Error::shape("mhc_gates", "raw", expected, raw.shape));
    }
    let iterations = match projection {
        Projection::Sinkhorn(iterations) => iterations,
        Projection::Exact2 => 0,
    };
    let closed = projection == Projection::Exact2;
    if streams > MAX_STREAMS || (closed && streams != 2) || (!closed && iterations == 0) {
        return Err(Error::Op {
            op: "mhc_gates",
            message: format!("{projection:?} is not possible with {streams} streams"),
        });
    }
    let params = Params {
        rows,
        streams,
        iterations,
        has_pre: 0,
        has_post: 0,
        has_mix: 0,
        add: 0,
    };
    let gate = Shape::from([rows, streams]);
    let shapes = [gate, gate, Shape::from([rows, streams * streams])];
    let outputs = tape.record(Gates { params }, &[raw], &shapes)?;
    Ok(MhcGates {
        pre: outputs[0],
        post: outputs[1],
        mix: outputs[2],
    })
}

impl Op for Gates {
    fn name(&self) -> &'static str {
        "mhc_gates"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let args = [
            rec.value(x[0]),
            rec.value(y[0]),
            rec.value(y[1]),
            rec.value(y[2]),
        ];
        let params = self.params.clone();
        let rows = params.rows as usize;
        rec.dispatch(&kernels::MHC_GATES_FORWARD, params, &args, rows)
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let Some(draw) = rec.grad(x[0]) else {
            return Ok(());
        };
        let raw = rec.value(x[0]);
        let grads = [y[0], y[1], y[2]].map(|output| rec.out_grad(output));
        let [has_pre, has_post, has_mix] = grads.map(|grad| u32::from(grad.is_some()));
        // Bindings cannot be empty: `raw` stands in for a gradient that is absent, and is not used.
        let [dpre, dpost, dmix] = grads.map(|grad| grad.unwrap_or(raw));
        let params = Params {
            has_pre,
            has_post,
            has_mix,
            add: draw.add,
            ..self.params.clone()
        };
        let rows = params.rows as usize;
        let count = (2 * params.iterations * params.streams).max(1) as usize;
        let sums = rec.scratch("sums of columns and rows", count * rows);
        let args = [raw, dpre, dpost, dmix, sums, draw.arg];
        rec.dispatch(&kernels::MHC_GATES_BACKWARD, params, &args, rows)
    }
}
