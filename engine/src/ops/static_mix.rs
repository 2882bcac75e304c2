//! A weighted sum of slots of a history, with weights that all tokens share.
//!
//! `mixed = sum over i of w[i] * x[i]`. The kernels are `shaders/static_mix.wgsl`; the gradient is written there.

use super::column_sum::{self, column_sum};
use super::depth_attention::{self, MAX_SOURCES, SKIP};
use crate::error::{Error, Result};
use crate::kernel::kernels;
use crate::shape::Shape;
use crate::tape::{History, Op, Recorder, Slot, Tape, Tensor};

crate::params! {
    /// Parameters of the kernels.
    pub struct Params {
        /// Elements of a slot that are used.
        len: u32,
        /// Sources.
        count: u32,
        /// Elements from one slot to the next.
        stride: u32,
        /// Partial sums of `backward_weights`, for each source.
        parts: u32,
        /// Slot of each source.
        slots: [u32; 64],
        /// What to do with the gradient of each source.
        update: [u32; 64],
    }
}

#[derive(Debug)]
struct StaticMix {
    params: Params,
    history: History,
}

/// `sum over i of weights[i] * sources[i]`, `[rows, dim]`, for `weights` with one number a source. The weights may be
/// negative and need not sum to one.
///
/// # Errors
/// If there are no sources or more than 64, or not as many weights.
pub fn static_mix(
    tape: &mut Tape,
    history: History,
    sources: &[Slot],
    weights: Tensor,
) -> Result<Tensor> {
    let count = sources.len();
    if count == 0 || count > MAX_SOURCES {
        return Err(Error::Op {
            op: "static_mix",
            message: format!("{count} sources, 1 to {MAX_SOURCES} are possible"),
        });
    }
    if weights.shape.len() != count {
        return Err(Error::shape(
            "static_mix",
            "weights",
            [count],
            weights.shape,
        ));
    }
    let len = history.rows * history.dim;
    let mut params = Params {
        len,
        count: count as u32,
        stride: history.stride,
        // About as many partial sums as terms in each, by shape alone.
        parts: len.div_ceil(len.isqrt().max(64)),
        slots: [0; MAX_SOURCES],
        update: [SKIP; MAX_SOURCES],
    };
    for (slot, source) in params.slots.iter_mut().zip(sources) {
        *slot = source.index;
    }
    let inputs: Vec<Tensor> = std::iter::once(weights)
        .chain(sources.iter().map(|source| source.tensor))
        .collect();
    let shape = Shape::from([history.rows, history.dim]);
    Ok(tape.record(StaticMix { params, history }, &inputs, &[shape])?[0])
}

impl Op for StaticMix {
    fn name(&self) -> &'static str {
        "static_mix"
    }

    fn forward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let p = &self.params;
        let args = [rec.history(self.history), rec.value(x[0]), rec.value(y[0])];
        rec.dispatch(
            &kernels::STATIC_MIX_FORWARD,
            p.clone(),
            &args,
            p.len as usize,
        )
    }

    fn backward(&self, rec: &mut Recorder, x: &[Tensor], y: &[Tensor]) -> Result<()> {
        let Some(d_mixed) = rec.out_grad(y[0]) else {
            return Ok(());
        };
        let mut p = self.params.clone();
        if let Some(d_weights) = rec.grad(x[0]) {
            let items = (p.parts * p.count) as usize;
            let partial = rec.scratch("partial weights", items);
            let args = [rec.history(self.history), d_mixed, partial];
            rec.dispatch(
                &kernels::STATIC_MIX_BACKWARD_WEIGHTS,
                p.clone(),
                &args,
                items,
            )?;
            let sum = column_sum::Params {
                rows: p.parts,
                dim: p.count,
                add: d_weights.add,
            };
            column_sum(rec, partial, sum, d_weights.arg)?;
        }
        for (update, &source) in p.update.iter_mut().zip(&x[1..]) {
            *update = depth_attention::update(rec, source);
        }
        if p.update.iter().all(|&update| update == SKIP) {
            return Ok(());
        }
        let items = p.len as usize;
        let args = [rec.value(x[0]), d_mixed, rec.history_grad(self.history)];
        rec.dispatch(&kernels::STATIC_MIX_BACKWARD, p, &args, items)
    }
}
