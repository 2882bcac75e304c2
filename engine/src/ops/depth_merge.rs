//! One more source joins a depth attention whose sum was left open: the second phase of a two-phase evaluation.
//!
//! `share = sigmoid(z - lse)`, `mixed = (1 - share) * o1 + share * P` (`spec/routing.md` section 2.4). The kernels are
//! `shaders/depth_merge.wgsl`, where the gradient is written, and those of `depth_attention` for the score of `P`.

use super::depth_attention::{self, DepthMix, SKIP, check_query, query_gradient};
use crate::error::{Error, Result};
use crate::kernel::kernels;
use crate::shape::Shape;
use crate::tape::{History, Op, Recorder, Slot, Tape, Tensor};

crate::params! {
    /// Parameters of the kernels.
    pub struct Params {
        /// Tokens.
        rows: u32,
        /// Width.
        dim: u32,
        /// Sources of the open sum.
        count: u32,
        /// Where the partial starts in the history.
        partial: u32,
        /// Normalise the key.
        key_norm: u32,
        /// Add to the gradient instead of storing.
        add: u32,
    }
}

/// What [`depth_attention::depth_attention_open`] returned.
#[derive(Clone, Copy, Debug)]
pub struct OpenMix {
    /// The mix of the other sources, `[rows, dim]`.
    pub mixed: Tensor,
    /// Their weights among themselves, `[rows, n]`.
    pub weights: Tensor,
    /// The logarithm of the sum of `exp(score)`, `[rows]`.
    pub log_sum: Tensor,
}

#[derive(Debug)]
struct DepthMerge {
    params: Params,
    /// Of the score of the partial, as the only source.
    score: depth_attention::Params,
    history: History,
}

/// Let `partial` join `open`: key and value are the slot itself, `query` row 0 asks, as it asked the other sources.
///
/// Returns the mix `[rows, dim]` and the weights `[rows, n + 1]`, those of a softmax over all sources, the partial last.
/// The weights have no gradient.
///
/// # Errors
/// If a shape does not fit the history.
pub fn depth_merge(
    tape: &mut Tape,
    history: History,
    open: OpenMix,
    partial: Slot,
    query: Tensor,
    gain: Tensor,
    mix: &DepthMix,
) -> Result<(Tensor, Tensor)> {
    let (rows, dim, count) = (history.rows, history.dim, open.weights.shape.last());
    for (what, tensor, expected) in [
        ("mix", open.mixed, [rows, dim]),
        ("weights", open.weights, [rows, count]),
        ("logarithm of the sum", open.log_sum, [rows, 1]),
    ] {
        if tensor.shape.len() != Shape::from(expected).len() {
            return Err(Error::shape("depth_merge", what, expected, tensor.shape));
        }
    }
    check_query("depth_merge", history, (query, 0), gain)?;
    let mut score = depth_attention::Params {
        count: 1,
        columns: 1,
        ..depth_attention::Params::new(history, query, 0, mix)
    };
    (score.key_slots[0], score.value_slots[0]) = (partial.index, partial.index);
    let params = Params {
        rows,
        dim,
        count,
        partial: partial.index * history.stride,
        key_norm: score.key_norm,
        add: 0,
    };
    let op = DepthMerge {
        params,
        score,
        history,
    };
    let inputs = [
        open.mixed,
        open.weights,
        open.log_sum,
        query,
        gain,
        partial.tensor,
    ];
    let shapes = [[rows, dim], [rows, count + 1], [rows, 2], [rows, 1]].map(Shape::from);
    let outputs = tape.record(op, &inputs, &shapes)?;
    Ok((outputs[0], outputs[1]))
}

impl DepthMerge {
    /// One invocation per row.
    fn rows(&self) -> usize {
        self.params.rows as usize
    }

    /// One invocation per element.
    fn elements(&self) -> usize {
        self.rows() * self.params.dim as usize
    }
}

impl Op for DepthMerge {
    fn name(&self) -> &'static str {
        "depth_merge"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let (p, history) = (&self.params, rec.history(self.history));
        let [o1, a, lse, query, gain] = [0, 1, 2, 3, 4].map(|i| rec.value(x[i]));
        let [mixed, weights, scores, share] = [0, 1, 2, 3].map(|i| rec.value(y[i]));
        let args = [history, query, gain, scores];
        rec.dispatch(
            self.score.form().scores,
            self.score.clone(),
            &args,
            self.rows(),
        )?;
        let args = [scores, lse, a, share, weights];
        rec.dispatch(&kernels::DEPTH_MERGE_SHARE, p.clone(), &args, self.rows())?;
        let args = [o1, history, share, mixed];
        rec.dispatch(
            &kernels::DEPTH_MERGE_FORWARD,
            p.clone(),
            &args,
            self.elements(),
        )
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let Some(d_mixed) = rec.out_grad(y[0]) else {
            return Ok(());
        };
        let (p, history) = (&self.params, rec.history(self.history));
        let [o1, query, gain] = [0, 3, 4].map(|i| rec.value(x[i]));
        let [scores, share] = [2, 3].map(|i| rec.value(y[i]));

        let slopes = rec.scratch("slopes", 2 * self.rows());
        let (d_lse, add) = match rec.grad(x[2]) {
            Some(grad) => (grad.arg, grad.add),
            None => (rec.scratch("unused gradient", self.rows()), 0),
        };
        let params = Params { add, ..p.clone() };
        let args = [o1, history, share, scores, d_mixed, slopes, d_lse];
        rec.dispatch(
            &kernels::DEPTH_MERGE_BACKWARD_SHARE,
            params,
            &args,
            self.rows(),
        )?;
        if let Some(d_o1) = rec.grad(x[0]) {
            let params = Params {
                add: d_o1.add,
                ..p.clone()
            };
            let args = [share, d_mixed, d_o1.arg];
            rec.dispatch(
                &kernels::DEPTH_MERGE_BACKWARD,
                params,
                &args,
                self.elements(),
            )?;
        }

        let mut score = self.score.clone();
        score.value_update[0] = depth_attention::update(rec, x[5]);
        if score.value_update[0] != SKIP {
            let d_history = rec.history_grad(self.history);
            let args = [history, query, gain, share, slopes, d_mixed, d_history];
            let form = score.form();
            rec.dispatch(form.backward, score, &args, form.items(p.rows, p.dim))?;
        }
        query_gradient(rec, &self.score, history, slopes, x[3], x[4])
    }
}
