//! How far one prediction is from another: the Kullback-Leibler divergence of each row, in nats.
//!
//! The kernel is `shaders/kl_divergence.wgsl`. To be read, not to be differentiated.

use crate::error::{Error, Result};
use crate::kernel::kernels;
use crate::shape::Shape;
use crate::tape::{Op, Recorder, Tape, Tensor};

crate::params! {
    /// Parameters of the kernel.
    pub struct Params {
        /// Tokens.
        rows: u32,
        /// Logits of a token.
        vocab: u32,
    }
}

#[derive(Debug)]
struct KlDivergence {
    params: Params,
}

/// `KL(softmax(p) || softmax(q))` of each row `[rows]`, for logits `p` and `q` `[.., vocab]`. Exactly 0 where rows are equal.
///
/// # Errors
/// If the shapes differ.
pub fn kl_divergence(tape: &mut Tape, p: Tensor, q: Tensor) -> Result<Tensor> {
    let (rows, vocab) = (p.shape.rows(), p.shape.last());
    if (q.shape.rows(), q.shape.last()) != (rows, vocab) {
        return Err(Error::shape("kl_divergence", "q", p.shape, q.shape));
    }
    let op = KlDivergence {
        params: Params { rows, vocab },
    };
    Ok(tape.record(op, &[p, q], &[Shape::from([rows])])?[0])
}

impl Op for KlDivergence {
    fn name(&self) -> &'static str {
        "kl_divergence"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let args = [rec.value(x[0]), rec.value(x[1]), rec.value(y[0])];
        let rows = self.params.rows as usize;
        let kernel = &kernels::KL_DIVERGENCE_FORWARD;
        rec.dispatch(kernel, self.params.clone(), &args, rows)
    }

    fn backward(&self, _: &mut Recorder, _: &[Tensor], _: &[Tensor]) -> Result<()> {
        Err(Error::Op {
            op: "kl_divergence",
            message: "it has no gradient".into(),
        })
    }
}
