//! Rotary position embedding.
//!
//! Channel `c` of a head pairs with channel `c + head_dim / 2`; the pair is turned by `position * theta^(-2 c / head_dim)`
//! (section 3 of the checkpoint format). The kernel is `shaders/rope.wgsl`; the gradient is the turn back.

use crate::error::{Error, Result};
use crate::kernel::kernels;
use crate::plan::Arg;
use crate::tape::{Op, Recorder, Tape, Tensor};

crate::params! {
    /// Parameters of the kernel.
    pub struct Params {
        /// Heads of all tokens: batch * seq_len * heads.
        rows: u32,
        /// Heads of a token.
        heads: u32,
        /// Tokens of a sequence.
        seq_len: u32,
        /// Pairs of a head.
        half_dim: u32,
        /// Add to the output instead of storing.
        add: u32,
        /// 1 to rotate, -1 to rotate back.
        sign: f64,
    }
}

/// Cosines and sines of all angles, `[seq_len, head_dim / 2]` each; made once and shared by all layers.
#[derive(Clone, Copy, Debug)]
pub struct RopeTables {
    cosines: Tensor,
    sines: Tensor,
    seq_len: u32,
    head_dim: u32,
}

/// Tables for positions `0..seq_len` of heads with `head_dim` channels (even).
pub fn rope_tables(tape: &mut Tape, seq_len: u32, head_dim: u32, theta: f64) -> RopeTables {
    let half = head_dim / 2;
    let angles: Vec<f64> = (0..seq_len)
        .flat_map(|position| (0..half).map(move |channel| (f64::from(position), channel)))
        .map(|(position, channel)| {
            position * theta.powf(-2.0 * f64::from(channel) / f64::from(head_dim))
        })
        .collect();
    let cosines = angles.iter().map(|angle| angle.cos()).collect();
    let sines = angles.iter().map(|angle| angle.sin()).collect();
    RopeTables {
        cosines: tape.constant("rotary cosines", [seq_len, half], cosines),
        sines: tape.constant("rotary sines", [seq_len, half], sines),
        seq_len,
        head_dim,
    }
}

#[derive(Debug)]
struct Rope {
    params: Params,
}

/// Rotate the heads of `x` `[batch, seq_len, heads, head_dim]` by their positions. Returns the shape of `x`.
///
/// # Errors
/// If `x` has not the tables' `seq_len` and `head_dim`, or `head_dim` is odd.
pub fn rope(tape: &mut Tape, x: Tensor, tables: &RopeTables) -> Result<Tensor> {
    let expected = || {
        let (seq_len, head_dim) = (tables.seq_len, tables.head_dim);
        let expected = format!("[batch, {seq_len}, heads, {head_dim}], head_dim even");
        Error::shape("rope", "x", expected, x.shape)
    };
    let &[batch, seq_len, heads, head_dim] = x.shape.dims() else {
        return Err(expected());
    };
    if seq_len != tables.seq_len || head_dim != tables.head_dim || head_dim % 2 != 0 {
        return Err(expected());
    }
    let params = Params {
        rows: batch * seq_len * heads,
        heads,
        seq_len,
        half_dim: head_dim / 2,
        add: 0,
        sign: 1.0,
    };
    let inputs = [x, tables.cosines, tables.sines];
    Ok(tape.record(Rope { params }, &inputs, &[x.shape])?[0])
}

impl Rope {
    fn rotate(
        &self,
        rec: &mut Recorder,
        x: &[Tensor],
        params: Params,
        ends: [Arg; 2],
    ) -> Result<()> {
        let args = [ends[0], rec.value(x[1]), rec.value(x[2]), ends[1]];
        rec.dispatch(&kernels::ROPE_ROTATE, params, &args, x[0].shape.len() / 2)
    }
}

impl Op for Rope {
    fn name(&self) -> &'static str {
        "rope"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let ends = [rec.value(x[0]), rec.value(y[0])];
        self.rotate(rec, x, self.params.clone(), ends)
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let (Some(dy), Some(dx)) = (rec.out_grad(y[0]), rec.grad(x[0])) else {
            return Ok(());
        };
        let params = Params {
            add: dx.add,
            sign: -1.0,
            ..self.params.clone()
        };
        self.rotate(rec, x, params, [dy, dx.arg])
    }
}
