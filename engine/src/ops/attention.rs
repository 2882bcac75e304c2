//! Causal attention with grouped heads, fused: no matrix of scores is ever stored.
//!
//! `o[t] = sum over s <= t of softmax(scale * <q[t], k[s]>) * v[s]`, for each sequence and head, `scale = 1 / sqrt(dim)`.
//! The kernel is `shaders/attention.wgsl`; the gradient is derived there. Memory grows with the number of tokens, not with
//! its square: kept are the output and one number, the log of the softmax's denominator, per query.

use crate::error::{Error, Result};
use crate::kernel::{Kernel, kernels};
use crate::shape::Shape;
use crate::tape::{Op, Recorder, Tape, Tensor};

/// Largest head dimension: the kernels keep a row of it in registers.
const MAX_DIM: u32 = 128;

crate::params! {
    /// Parameters of the kernels.
    pub struct Params {
        /// Sequences.
        batch: u32,
        /// Length of a sequence.
        tokens: u32,
        /// Query heads.
        heads: u32,
        /// Key/value heads.
        kv_heads: u32,
        /// Channels of a head.
        dim: u32,
        /// Add to the gradient of the query (or of the key) instead of storing.
        add: u32,
        /// Add to the gradient of the value instead of storing.
        add_value: u32,
        /// Factor of the scores.
        scale: f64,
    }
}

/// The entry points of one file.
#[derive(Debug)]
struct Form {
    forward: &'static Kernel,
    delta: &'static Kernel,
    query: &'static Kernel,
    key_value: &'static Kernel,
}

/// The plain kernels take any dimension; for common ones there are faster files.
fn form(dim: u32) -> Form {
    match dim {
        16 => Form {
            forward: &kernels::ATTENTION_16_FORWARD,
            delta: &kernels::ATTENTION_16_BACKWARD_DELTA,
            query: &kernels::ATTENTION_16_BACKWARD_QUERY,
            key_value: &kernels::ATTENTION_16_BACKWARD_KEY_VALUE,
        },
        32 => Form {
            forward: &kernels::ATTENTION_32_FORWARD,
            delta: &kernels::ATTENTION_32_BACKWARD_DELTA,
            query: &kernels::ATTENTION_32_BACKWARD_QUERY,
            key_value: &kernels::ATTENTION_32_BACKWARD_KEY_VALUE,
        },
        64 => Form {
            forward: &kernels::ATTENTION_64_FORWARD,
            delta: &kernels::ATTENTION_64_BACKWARD_DELTA,
            query: &kernels::ATTENTION_64_BACKWARD_QUERY,
            key_value: &kernels::ATTENTION_64_BACKWARD_KEY_VALUE,
        },
        128 => Form {
            forward: &kernels::ATTENTION_128_FORWARD,
            delta: &kernels::ATTENTION_128_BACKWARD_DELTA,
            query: &kernels::ATTENTION_128_BACKWARD_QUERY,
            key_value: &kernels::ATTENTION_128_BACKWARD_KEY_VALUE,
        },
        _ => Form {
            forward: &kernels::ATTENTION_FORWARD,
            delta: &kernels::ATTENTION_BACKWARD_DELTA,
            query: &kernels::ATTENTION_BACKWARD_QUERY,
            key_value: &kernels::ATTENTION_BACKWARD_KEY_VALUE,
        },
    }
}

#[derive(Debug)]
struct Attention {
    params: Params,
    form: Form,
}

impl Attention {
    /// Invocations with one query each.
    fn queries(&self) -> usize {
        (self.params.batch * self.params.tokens * self.params.heads) as usize
    }

    /// Invocations with one key each.
    fn keys(&self) -> usize {
        (self.params.batch * self.params.tokens * self.params.kv_heads) as usize
    }
}

/// Let each token read the tokens up to itself: `q` `[batch, tokens, heads, dim]`, `k` and `v`
/// `[batch, tokens, kv_heads, dim]`. Query head `h` reads key/value head `h / (heads / kv_heads)`. Returns the shape of `q`.
///
/// # Errors
/// If the shapes do not belong together, `kv_heads` does not divide `heads`, `dim` is above 128, or `k` and `v` are one
/// tensor (their gradients are written by one kernel).
pub fn attention(tape: &mut Tape, q: Tensor, k: Tensor, v: Tensor) -> Result<Tensor> {
    let &[batch, tokens, heads, dim] = q.shape.dims() else {
        let expected = "[batch, tokens, heads, dim]";
        return Err(Error::shape("attention", "q", expected, q.shape));
    };
    let kv_heads = k.shape.dims().get(2).copied().unwrap_or(0);
    let expected = [batch, tokens, kv_heads, dim];
    for (what, tensor) in [("k", k), ("v", v)] {
        if tensor.shape != Shape::from(expected) {
            return Err(Error::shape("attention", what, expected, tensor.shape));
        }
    }
    if kv_heads == 0 || heads % kv_heads != 0 {
        return Err(Error::config(
            "model.kv_heads",
            format!("{kv_heads} key/value heads do not divide {heads} query heads"),
        ));
    }
    if dim == 0 || dim > MAX_DIM {
        return Err(Error::config(
            "model.head_dim",
            format!("is {dim}; attention takes 1 to {MAX_DIM}"),
        ));
    }
    if k == v {
        return Err(Error::Op {
            op: "attention",
            message: "keys and values are the same tensor".into(),
        });
    }
    let params = Params {
        batch,
        tokens,
        heads,
        kv_heads,
        dim,
        add: 0,
        add_value: 0,
        scale: 1.0 / f64::from(dim).sqrt(),
    };
    let op = Attention {
        params,
        form: form(dim),
    };
    let lse = Shape::from([batch, tokens, heads]);
    Ok(tape.record(op, &[q, k, v], &[q.shape, lse])?[0])
}

impl Op for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let args = [x[0], x[1], x[2], y[0], y[1]].map(|tensor| rec.value(tensor));
        rec.dispatch(
            self.form.forward,
            self.params.clone(),
            &args,
            self.queries(),
        )
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let Some(d_out) = rec.out_grad(y[0]) else {
            return Ok(());
        };
        let [q, k, v, o, lse] = [x[0], x[1], x[2], y[0], y[1]].map(|tensor| rec.value(tensor));
        let delta = rec.scratch("delta", self.queries());
        rec.dispatch(
            self.form.delta,
            self.params.clone(),
            &[o, d_out, delta],
            self.queries(),
        )?;
        if let Some(dq) = rec.grad(x[0]) {
            let params = Params {
                add: dq.add,
                ..self.params.clone()
            };
            rec.dispatch(
                self.form.query,
                params,
                &[q, k, v, d_out, lse, delta, dq.arg],
                self.queries(),
            )?;
        }
        let (dk, dv) = (rec.grad(x[1]), rec.grad(x[2]));
        if dk.is_none() && dv.is_none() {
            return Ok(());
        }
        // One kernel writes both; what nobody wants goes to scratch memory.
        let mut place = |label, grad: Option<crate::tape::Grad>, len| match grad {
            Some(grad) => (grad.arg, grad.add),
            None => (rec.scratch(label, len), 0),
        };
        let (dk, add) = place("unused key gradient", dk, x[1].shape.len());
        let (dv, add_value) = place("unused value gradient", dv, x[2].shape.len());
        let params = Params {
            add,
            add_value,
            ..self.params.clone()
        };
        rec.dispatch(
            self.form.key_value,
            params,
            &[q, k, v, d_out, lse, delta, dk, dv],
            self.keys(),
        )
    }
}
