//! Attention along depth: each token mixes its own sources, earlier states of the network.
//!
//! `mixed = sum over i of a[i] * v[i]`, `a = softmax over i of <q * gain, rms(k[i])>` (`spec/routing.md` section 2). The
//! kernels are `shaders/depth_attention.wgsl`; the gradient is written there.

use super::column_sum::blocks;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, kernels};
use crate::shape::Shape;
use crate::tape::{Grad, History, Op, Recorder, Slot, Tape, Tensor};

/// As many sources as the slot lists in `Params` can hold.
pub const MAX_SOURCES: usize = 64;

/// What the kernels do with the gradient of a slot: nothing, ..
pub(crate) const SKIP: u32 = 0;
/// .. store, as the first to write it, ..
pub(crate) const STORE: u32 = 1;
/// .. or add to what is there.
pub(crate) const ADD: u32 = 2;

crate::params! {
    /// Parameters of the kernels.
    pub struct Params {
        /// Tokens.
        rows: u32,
        /// Width.
        dim: u32,
        /// Sources.
        count: u32,
        /// Columns of the weights: `count`, and one more for the null source.
        columns: u32,
        /// Elements from one slot to the next.
        stride: u32,
        /// Row of the query parameter.
        query_row: u32,
        /// Rows of the query parameter.
        query_rows: u32,
        /// Mix with `a - 1 / count`.
        centered: u32,
        /// There is a null source.
        null_source: u32,
        /// Rows per block of `backward_query`.
        chunk: u32,
        /// Add to the gradient of the query instead of storing.
        add_query: u32,
        /// Add to the gradient of the gain instead of storing.
        add_gain: u32,
        /// Added to the mean square of a key.
        eps: f64,
        /// Logit of the null source.
        null_logit: f64,
        /// Slot of each source's key.
        key_slots: [u32; 64],
        /// Slot of each source's value.
        value_slots: [u32; 64],
        /// What to do with the gradient of each key.
        key_update: [u32; 64],
        /// What to do with the gradient of each value.
        value_update: [u32; 64],
    }
}

/// How sources are weighed.
#[derive(Clone, Debug, PartialEq)]
pub struct DepthMix {
    /// Added to the mean square of a key.
    pub eps: f64,
    /// Subtract `1 / n` from every weight when mixing (`centered` of the delta mechanism).
    pub centered: bool,
    /// Logit of one more source, constant and with value zero (`null` of the delta mechanism).
    pub null_logit: Option<f64>,
}

/// The entry points of one file.
#[derive(Debug)]
struct Form {
    scores: &'static Kernel,
    softmax: &'static Kernel,
    forward: &'static Kernel,
    backward_scores: &'static Kernel,
    backward_softmax: &'static Kernel,
    backward: &'static Kernel,
    backward_query: &'static Kernel,
    backward_query_sum: &'static Kernel,
    /// Channels that one invocation handles.
    channels: u32,
}

const PLAIN: Form = Form {
    scores: &kernels::DEPTH_ATTENTION_SCORES,
    softmax: &kernels::DEPTH_ATTENTION_SOFTMAX,
    forward: &kernels::DEPTH_ATTENTION_FORWARD,
    backward_scores: &kernels::DEPTH_ATTENTION_BACKWARD_SCORES,
    backward_softmax: &kernels::DEPTH_ATTENTION_BACKWARD_SOFTMAX,
    backward: &kernels::DEPTH_ATTENTION_BACKWARD,
    backward_query: &kernels::DEPTH_ATTENTION_BACKWARD_QUERY,
    backward_query_sum: &kernels::DEPTH_ATTENTION_BACKWARD_QUERY_SUM,
    channels: 1,
};

const VEC4: Form = Form {
    scores: &kernels::DEPTH_ATTENTION_VEC4_SCORES,
    softmax: &kernels::DEPTH_ATTENTION_VEC4_SOFTMAX,
    forward: &kernels::DEPTH_ATTENTION_VEC4_FORWARD,
    backward_scores: &kernels::DEPTH_ATTENTION_VEC4_BACKWARD_SCORES,
    backward_softmax: &kernels::DEPTH_ATTENTION_VEC4_BACKWARD_SOFTMAX,
    backward: &kernels::DEPTH_ATTENTION_VEC4_BACKWARD,
    backward_query: &kernels::DEPTH_ATTENTION_VEC4_BACKWARD_QUERY,
    backward_query_sum: &kernels::DEPTH_ATTENTION_VEC4_BACKWARD_QUERY_SUM,
    channels: 4,
};

#[derive(Debug)]
struct DepthAttention {
    params: Params,
    form: &'static Form,
    history: History,
}

/// Mix sources for each row. A source is a pair of slots of `history`, the key and the value, which may be the same slot.
///
/// `query` is a whole parameter `[r, dim]` of which row `query_row` asks; `gain` `[dim]` scales the normalised keys.
/// Returns the mixed values `[rows, dim]` and the weights `[rows, n]`, or `[rows, n + 1]` with the null source last.
/// The weights are those of the softmax, also if `centered`, and have no gradient.
///
/// # Errors
/// If there are no sources or more than 64, or a shape does not fit the history.
pub fn depth_attention(
    tape: &mut Tape,
    history: History,
    sources: &[(Slot, Slot)],
    query: Tensor,
    query_row: u32,
    gain: Tensor,
    mix: &DepthMix,
) -> Result<(Tensor, Tensor)> {
    let (rows, dim) = (history.rows, history.dim);
    if sources.is_empty() || sources.len() > MAX_SOURCES {
        return Err(Error::Op {
            op: "depth_attention",
            message: format!(
                "{} sources, 1 to {MAX_SOURCES} are possible; larger blocks make fewer (residual.sublayers_per_block or \
                 residual.layers_per_block)",
                sources.len()
            ),
        });
    }
    if query.shape.last() != dim || query_row >= query.shape.rows() {
        let expected = format!("[more than {query_row}, {dim}]");
        return Err(Error::shape(
            "depth_attention",
            "query",
            expected,
            query.shape,
        ));
    }
    if gain.shape.len() != dim as usize {
        return Err(Error::shape("depth_attention", "gain", [dim], gain.shape));
    }
    let count = sources.len() as u32;
    let columns = count + u32::from(mix.null_logit.is_some());
    let mut params = Params {
        rows,
        dim,
        count,
        columns,
        stride: history.stride,
        query_row,
        query_rows: query.shape.rows(),
        centered: u32::from(mix.centered),
        null_source: u32::from(mix.null_logit.is_some()),
        chunk: blocks(rows).1,
        add_query: 0,
        add_gain: 0,
        eps: mix.eps,
        null_logit: mix.null_logit.unwrap_or(0.0),
        key_slots: [0; MAX_SOURCES],
        value_slots: [0; MAX_SOURCES],
        key_update: [SKIP; MAX_SOURCES],
        value_update: [SKIP; MAX_SOURCES],
    };
    let mut inputs = vec![query, gain];
    for (i, &(key, value)) in sources.iter().enumerate() {
        for (what, slot) in [("key", key), ("value", value)] {
            if slot.tensor.shape.len() != (rows * dim) as usize {
                return Err(Error::shape(
                    "depth_attention",
                    what,
                    [rows, dim],
                    slot.tensor.shape,
                ));
            }
            inputs.push(slot.tensor);
        }
        (params.key_slots[i], params.value_slots[i]) = (key.index, value.index);
    }
    let form = if dim % 4 == 0 { &VEC4 } else { &PLAIN };
    let op = DepthAttention {
        params,
        form,
        history,
    };
    let shapes = [[rows, dim], [rows, columns], [rows, 2 * count]].map(Shape::from);
    let outputs = tape.record(op, &inputs, &shapes)?;
    Ok((outputs[0], outputs[1]))
}

impl DepthAttention {
    /// One invocation per row and source.
    fn sources(&self) -> usize {
        (self.params.rows * self.params.count) as usize
    }

    /// One invocation per element of `rows` rows.
    fn channels(&self, rows: u32) -> usize {
        (rows * self.params.dim / self.form.channels) as usize
    }
}

impl Op for DepthAttention {
    fn name(&self) -> &'static str {
        "depth_attention"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let (p, form, history) = (&self.params, self.form, rec.history(self.history));
        let [query, gain] = [x[0], x[1]].map(|tensor| rec.value(tensor));
        let [mixed, weights, scores] = [y[0], y[1], y[2]].map(|tensor| rec.value(tensor));
        let args = [history, query, gain, scores];
        rec.dispatch(form.scores, p.clone(), &args, self.sources())?;
        rec.dispatch(form.softmax, p.clone(), &[scores, weights], p.rows as usize)?;
        let args = [history, weights, mixed];
        rec.dispatch(form.forward, p.clone(), &args, self.channels(p.rows))
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let Some(d_mixed) = rec.out_grad(y[0]) else {
            return Ok(());
        };
        let (p, form, history) = (&self.params, self.form, rec.history(self.history));
        let [query, gain] = [x[0], x[1]].map(|tensor| rec.value(tensor));
        let [weights, scores] = [y[1], y[2]].map(|tensor| rec.value(tensor));

        let slopes = rec.scratch("slopes", 2 * self.sources());
        let args = [history, d_mixed, slopes];
        rec.dispatch(form.backward_scores, p.clone(), &args, self.sources())?;
        let args = [scores, weights, slopes];
        rec.dispatch(form.backward_softmax, p.clone(), &args, p.rows as usize)?;

        // The kernel goes through the sources in this order, the value of each before its key.
        let mut params = p.clone();
        let update = |rec: &mut Recorder, tensor| match rec.grad(tensor) {
            None => SKIP,
            Some(Grad { add: 0, .. }) => STORE,
            Some(_) => ADD,
        };
        for (i, pair) in x[2..].chunks_exact(2).enumerate() {
            params.value_update[i] = update(rec, pair[1]);
            params.key_update[i] = update(rec, pair[0]);
        }
        let updates = params.value_update.iter().chain(&params.key_update);
        if updates.into_iter().any(|&update| update != SKIP) {
            let d_history = rec.history_grad(self.history);
            let args = [history, query, gain, weights, slopes, d_mixed, d_history];
            rec.dispatch(form.backward, params, &args, self.channels(p.rows))?;
        }

        let (d_query, d_gain) = (rec.grad(x[0]), rec.grad(x[1]));
        if d_query.is_none() && d_gain.is_none() {
            return Ok(());
        }
        let count = blocks(p.rows).0;
        let partial = rec.scratch("partial query", (count * p.dim) as usize);
        let args = [history, slopes, partial];
        rec.dispatch(form.backward_query, p.clone(), &args, self.channels(count))?;
        // One kernel writes both; what nobody wants goes to scratch memory.
        let mut place = |label, grad: Option<Grad>, len| match grad {
            Some(grad) => (grad.arg, grad.add),
            None => (rec.scratch(label, len), 0),
        };
        let (d_query, add_query) = place("unused query gradient", d_query, x[0].shape.len());
        let (d_gain, add_gain) = place("unused gain gradient", d_gain, x[1].shape.len());
        let params = Params {
            add_query,
            add_gain,
            ..p.clone()
        };
        let args = [partial, query, gain, d_query, d_gain];
        rec.dispatch(form.backward_query_sum, params, &args, self.channels(1))
    }
}
