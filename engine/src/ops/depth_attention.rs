//! Attention along depth: each token mixes its own sources, earlier states of the network.
//!
//! `mixed = sum over i of a[i] * v[i]`, `a = softmax over i of <q * gain, rms(k[i])>` (`spec/routing.md` section 2). The
//! kernels are `shaders/depth_attention.wgsl`; the gradient is written there.

use super::column_sum::blocks;
use super::edit_weights::{self, edit_len};
use super::replace;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, kernels};
use crate::plan::Arg;
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
        /// Parts of the channels, each with weights of its own.
        heads: u32,
        /// Normalise the keys.
        key_norm: u32,
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

/// What makes weights of scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// The softmax over the sources.
    #[default]
    Softmax,
    /// The sigmoid of each score: weights that do not compete, and do not sum to one.
    Sigmoid,
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
    /// What makes weights of scores.
    pub activation: Activation,
    /// Parts of the channels, each with scores and weights of its own. The norm of a key is over all channels.
    pub heads: u32,
    /// Whether keys are normalised.
    pub key_norm: bool,
}

impl DepthMix {
    /// A softmax over normalised keys, one head.
    #[must_use]
    pub const fn softmax(eps: f64) -> Self {
        Self {
            eps,
            centered: false,
            null_logit: None,
            activation: Activation::Softmax,
            heads: 1,
            key_norm: true,
        }
    }
}

/// The entry points of one file.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) scores: &'static Kernel,
    softmax: &'static Kernel,
    sigmoid_weights: &'static Kernel,
    log_sum: &'static Kernel,
    forward: &'static Kernel,
    backward_scores: &'static Kernel,
    backward_softmax: &'static Kernel,
    backward_sigmoid: &'static Kernel,
    backward_log_sum: &'static Kernel,
    pub(crate) backward: &'static Kernel,
    backward_query: &'static Kernel,
    backward_query_sum: &'static Kernel,
    /// Channels that one invocation handles.
    channels: u32,
}

const PLAIN: Form = Form {
    scores: &kernels::DEPTH_ATTENTION_SCORES,
    softmax: &kernels::DEPTH_ATTENTION_SOFTMAX,
    sigmoid_weights: &kernels::DEPTH_ATTENTION_SIGMOID_WEIGHTS,
    log_sum: &kernels::DEPTH_ATTENTION_LOG_SUM,
    forward: &kernels::DEPTH_ATTENTION_FORWARD,
    backward_scores: &kernels::DEPTH_ATTENTION_BACKWARD_SCORES,
    backward_softmax: &kernels::DEPTH_ATTENTION_BACKWARD_SOFTMAX,
    backward_sigmoid: &kernels::DEPTH_ATTENTION_BACKWARD_SIGMOID,
    backward_log_sum: &kernels::DEPTH_ATTENTION_BACKWARD_LOG_SUM,
    backward: &kernels::DEPTH_ATTENTION_BACKWARD,
    backward_query: &kernels::DEPTH_ATTENTION_BACKWARD_QUERY,
    backward_query_sum: &kernels::DEPTH_ATTENTION_BACKWARD_QUERY_SUM,
    channels: 1,
};

const VEC4: Form = Form {
    scores: &kernels::DEPTH_ATTENTION_VEC4_SCORES,
    softmax: &kernels::DEPTH_ATTENTION_VEC4_SOFTMAX,
    sigmoid_weights: &kernels::DEPTH_ATTENTION_VEC4_SIGMOID_WEIGHTS,
    log_sum: &kernels::DEPTH_ATTENTION_VEC4_LOG_SUM,
    forward: &kernels::DEPTH_ATTENTION_VEC4_FORWARD,
    backward_scores: &kernels::DEPTH_ATTENTION_VEC4_BACKWARD_SCORES,
    backward_softmax: &kernels::DEPTH_ATTENTION_VEC4_BACKWARD_SOFTMAX,
    backward_sigmoid: &kernels::DEPTH_ATTENTION_VEC4_BACKWARD_SIGMOID,
    backward_log_sum: &kernels::DEPTH_ATTENTION_VEC4_BACKWARD_LOG_SUM,
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
    activation: Activation,
    /// There is a fourth output, the logarithm of the softmax's sum.
    log_sum: bool,
    /// What the weights were before, on an analysing tape: the switch and the weights.
    frozen: Option<[Tensor; 2]>,
    /// What somebody wants the weights to be, on an editing tape.
    edit: Option<Tensor>,
}

/// Mix sources for each row. A source is a pair of slots of `history`, the key and the value, which may be the same slot.
///
/// `query` is a whole parameter `[r, dim]` of which row `query_row` asks; `gain` `[dim]` scales the normalised keys.
/// Returns the mixed values `[rows, dim]` and the weights `[rows * heads, n]`, or `[rows, n + 1]` with the null source last.
/// The weights are those of the softmax, also if `centered`, and have no gradient.
///
/// # Errors
/// If there are no sources or more than 64, a shape does not fit the history, the heads do not divide the width, or `mix`
/// wants of a sigmoid what only a softmax has.
pub fn depth_attention(
    tape: &mut Tape,
    history: History,
    sources: &[(Slot, Slot)],
    query: Tensor,
    query_row: u32,
    gain: Tensor,
    mix: &DepthMix,
) -> Result<(Tensor, Tensor)> {
    let outputs = record(tape, history, sources, (query, query_row), gain, mix, false)?;
    Ok((outputs[0], outputs[1]))
}

/// As [`depth_attention`] with a softmax, for a sum that goes on: returns also the logarithm of the sum of `exp(score)`
/// `[rows]`, for [`super::depth_merge`].
///
/// # Errors
/// As [`depth_attention`]; also if there are several heads, a null source, or `centered`.
pub fn depth_attention_open(
    tape: &mut Tape,
    history: History,
    sources: &[(Slot, Slot)],
    query: Tensor,
    query_row: u32,
    gain: Tensor,
    mix: &DepthMix,
) -> Result<(Tensor, Tensor, Tensor)> {
    if *mix != DepthMix::softmax(mix.eps) {
        return Err(Error::Op {
            op: "depth_attention",
            message: format!("only a plain softmax with one head can be continued, not {mix:?}"),
        });
    }
    let outputs = record(tape, history, sources, (query, query_row), gain, mix, true)?;
    Ok((outputs[0], outputs[1], outputs[3]))
}

impl Params {
    /// Parameters that every use has, with no sources yet.
    pub(crate) fn new(history: History, query: Tensor, query_row: u32, mix: &DepthMix) -> Self {
        Self {
            rows: history.rows,
            dim: history.dim,
            count: 0,
            columns: 0,
            stride: history.stride,
            query_row,
            query_rows: query.shape.rows(),
            centered: u32::from(mix.centered),
            null_source: u32::from(mix.null_logit.is_some()),
            chunk: blocks(history.rows).1,
            add_query: 0,
            add_gain: 0,
            heads: mix.heads,
            key_norm: u32::from(mix.key_norm),
            eps: mix.eps,
            null_logit: mix.null_logit.unwrap_or(0.0),
            key_slots: [0; MAX_SOURCES],
            value_slots: [0; MAX_SOURCES],
            key_update: [SKIP; MAX_SOURCES],
            value_update: [SKIP; MAX_SOURCES],
        }
    }

    /// The kernels that fit the width of a head.
    pub(crate) fn form(&self) -> &'static Form {
        if self.dim.is_multiple_of(4 * self.heads) {
            &VEC4
        } else {
            &PLAIN
        }
    }
}

/// What to do with a gradient that the kernels write themselves.
pub(crate) fn update(rec: &mut Recorder, tensor: Tensor) -> u32 {
    match rec.grad(tensor) {
        None => SKIP,
        Some(Grad { add: 0, .. }) => STORE,
        Some(_) => ADD,
    }
}

/// Check that a query and a gain fit the history.
pub(crate) fn check_query(
    op: &'static str,
    history: History,
    (query, query_row): (Tensor, u32),
    gain: Tensor,
) -> Result<()> {
    let dim = history.dim;
    if query.shape.last() != dim || query_row >= query.shape.rows() {
        let expected = format!("[more than {query_row}, {dim}]");
        return Err(Error::shape(op, "query", expected, query.shape));
    }
    if gain.shape.len() != dim as usize {
        return Err(Error::shape(op, "gain", [dim], gain.shape));
    }
    Ok(())
}

fn record(
    tape: &mut Tape,
    history: History,
    sources: &[(Slot, Slot)],
    (query, query_row): (Tensor, u32),
    gain: Tensor,
    mix: &DepthMix,
    log_sum: bool,
) -> Result<Vec<Tensor>> {
    let (rows, dim, heads) = (history.rows, history.dim, mix.heads);
    let refuse = |message| {
        Err(Error::Op {
            op: "depth_attention",
            message,
        })
    };
    if sources.is_empty() || sources.len() > MAX_SOURCES {
        return refuse(format!(
            "{} sources, 1 to {MAX_SOURCES} are possible",
            sources.len()
        ));
    }
    if heads == 0 || !dim.is_multiple_of(heads) {
        return refuse(format!("{heads} heads do not divide a width of {dim}"));
    }
    if mix.activation == Activation::Sigmoid && (mix.centered || mix.null_logit.is_some()) {
        return refuse("a sigmoid has neither a mean to take away nor a null source".into());
    }
    check_query("depth_attention", history, (query, query_row), gain)?;
    let count = sources.len() as u32;
    let columns = count + u32::from(mix.null_logit.is_some());
    let mut params = Params {
        count,
        columns,
        ..Params::new(history, query, query_row, mix)
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
    let head_rows = rows * heads;
    let op = DepthAttention {
        form: params.form(),
        params,
        history,
        activation: mix.activation,
        log_sum,
        frozen: tape.next_frozen(head_rows, columns),
        edit: tape.next_edit(edit_len(columns)),
    };
    let mut shapes = [[rows, dim], [head_rows, columns], [head_rows, 2 * count]]
        .map(Shape::from)
        .to_vec();
    if log_sum {
        shapes.push(Shape::from([rows]));
    }
    tape.record(op, &inputs, &shapes)
}

impl DepthAttention {
    /// One invocation per row and head.
    fn head_rows(&self) -> usize {
        (self.params.rows * self.params.heads) as usize
    }

    /// One invocation per row, head and source.
    fn sources(&self) -> usize {
        self.head_rows() * self.params.count as usize
    }
}

impl Form {
    /// One invocation per Value of `rows` rows.
    pub(crate) fn items(&self, rows: u32, dim: u32) -> usize {
        (rows * dim / self.channels) as usize
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
        match self.activation {
            Activation::Softmax => {
                let args = [scores, weights];
                rec.dispatch(form.softmax, p.clone(), &args, self.head_rows())?;
            }
            Activation::Sigmoid => {
                let args = [scores, weights];
                rec.dispatch(form.sigmoid_weights, p.clone(), &args, self.sources())?;
            }
        }
        if self.log_sum {
            let args = [scores, weights, rec.value(y[3])];
            rec.dispatch(form.log_sum, p.clone(), &args, self.head_rows())?;
        }
        let rows = self.head_rows() as u32;
        if let Some(frozen) = self.frozen {
            let [on, by] = frozen.map(|tensor| rec.value(tensor));
            replace::record(rec, on, by, weights, rows, p.columns)?;
        }
        if let Some(edit) = self.edit {
            edit_weights::record(rec, weights, rec.value(edit), rows, p.columns)?;
        }
        let args = [history, weights, mixed];
        rec.dispatch(form.forward, p.clone(), &args, form.items(p.rows, p.dim))
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let d_log_sum = if self.log_sum {
            rec.out_grad(y[3])
        } else {
            None
        };
        let Some(d_mixed) = rec.out_grad(y[0]) else {
            return match d_log_sum {
                None => Ok(()),
                Some(_) => Err(Error::Op {
                    op: "depth_attention",
                    message: "the logarithm of the sum is used, and the mix is not".into(),
                }),
            };
        };
        let (p, form, history) = (&self.params, self.form, rec.history(self.history));
        let [query, gain] = [x[0], x[1]].map(|tensor| rec.value(tensor));
        let [weights, scores] = [y[1], y[2]].map(|tensor| rec.value(tensor));

        let slopes = rec.scratch("slopes", 2 * self.sources());
        let args = [history, d_mixed, slopes];
        rec.dispatch(form.backward_scores, p.clone(), &args, self.sources())?;
        let args = [scores, weights, slopes];
        match self.activation {
            Activation::Softmax => {
                rec.dispatch(form.backward_softmax, p.clone(), &args, self.head_rows())?;
            }
            Activation::Sigmoid => {
                rec.dispatch(form.backward_sigmoid, p.clone(), &args, self.sources())?;
            }
        }
        if let Some(d_log_sum) = d_log_sum {
            let args = [scores, weights, slopes, d_log_sum];
            rec.dispatch(form.backward_log_sum, p.clone(), &args, self.sources())?;
        }

        // The kernel goes through the sources in this order, the value of each before its key.
        let mut params = p.clone();
        for (i, pair) in x[2..].chunks_exact(2).enumerate() {
            params.value_update[i] = update(rec, pair[1]);
            params.key_update[i] = update(rec, pair[0]);
        }
        let updates = params.value_update.iter().chain(&params.key_update);
        if updates.into_iter().any(|&update| update != SKIP) {
            let d_history = rec.history_grad(self.history);
            let args = [history, query, gain, weights, slopes, d_mixed, d_history];
            rec.dispatch(form.backward, params, &args, form.items(p.rows, p.dim))?;
        }
        query_gradient(rec, p, history, slopes, x[0], x[1])
    }
}

/// The last kernels of a gradient: `slopes` to the gradients of query and gain.
pub(crate) fn query_gradient(
    rec: &mut Recorder,
    p: &Params,
    history: Arg,
    slopes: Arg,
    query: Tensor,
    gain: Tensor,
) -> Result<()> {
    let (d_query, d_gain) = (rec.grad(query), rec.grad(gain));
    if d_query.is_none() && d_gain.is_none() {
        return Ok(());
    }
    let (form, count) = (p.form(), blocks(p.rows).0);
    let partial = rec.scratch("partial query", (count * p.dim) as usize);
    let args = [history, slopes, partial];
    rec.dispatch(
        form.backward_query,
        p.clone(),
        &args,
        form.items(count, p.dim),
    )?;
    // One kernel writes both; what nobody wants goes to scratch memory.
    let mut place = |label, grad: Option<Grad>, len| match grad {
        Some(grad) => (grad.arg, grad.add),
        None => (rec.scratch(label, len), 0),
    };
    let (d_query, add_query) = place("unused query gradient", d_query, query.shape.len());
    let (d_gain, add_gain) = place("unused gain gradient", d_gain, gain.shape.len());
    let params = Params {
        add_query,
        add_gain,
        ..p.clone()
    };
    let args = [partial, rec.value(query), rec.value(gain), d_query, d_gain];
    rec.dispatch(form.backward_query_sum, params, &args, form.items(1, p.dim))
}
