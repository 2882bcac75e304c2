//! The gated activation of the feed-forward sublayer: `silu(gate) * up`.
//!
//! The kernels are `shaders/swiglu.wgsl`; the gradient is derived there.

use crate::error::{Error, Result};
use crate::kernel::kernels;
use crate::tape::{Grad, Op, Recorder, Tape, Tensor};

crate::params! {
    /// Parameters of the kernels.
    pub struct Params {
        /// Elements.
        len: u32,
        /// Add to the gradient of the gate instead of storing.
        add_gate: u32,
        /// The same for `up`.
        add_up: u32,
    }
}

#[derive(Debug)]
struct Swiglu;

/// `silu(gate) * up`, element by element. Both have the same shape, which is returned.
///
/// # Errors
/// If the shapes differ, or both are the same tensor (one kernel writes both gradients).
pub fn swiglu(tape: &mut Tape, gate: Tensor, up: Tensor) -> Result<Tensor> {
    if gate.shape.len() != up.shape.len() {
        return Err(Error::shape("swiglu", "up", gate.shape, up.shape));
    }
    if gate == up {
        return Err(Error::Op {
            op: "swiglu",
            message: "gate and up are the same tensor".into(),
        });
    }
    Ok(tape.record(Swiglu, &[gate, up], &[gate.shape])?[0])
}

impl Op for Swiglu {
    fn name(&self) -> &'static str {
        "swiglu"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let len = y[0].shape.len();
        let params = Params {
            len: len as u32,
            add_gate: 0,
            add_up: 0,
        };
        let args = [rec.value(x[0]), rec.value(x[1]), rec.value(y[0])];
        rec.dispatch(&kernels::SWIGLU_FORWARD, params, &args, len)
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let Some(dy) = rec.out_grad(y[0]) else {
            return Ok(());
        };
        let len = y[0].shape.len();
        let (gate, up) = (rec.value(x[0]), rec.value(x[1]));
        // A gradient that nobody wants goes to memory that nobody reads.
        let mut grad = |tensor, label| {
            rec.grad(tensor).unwrap_or_else(|| Grad {
                arg: rec.scratch(label, len),
                add: 0,
            })
        };
        let (d_gate, d_up) = (grad(x[0], "unused gate"), grad(x[1], "unused up"));
        let params = Params {
            len: len as u32,
            add_gate: d_gate.add,
            add_up: d_up.add,
        };
        let args = [gate, up, dy, d_gate.arg, d_up.arg];
        rec.dispatch(&kernels::SWIGLU_BACKWARD, params, &args, len)
    }
}
