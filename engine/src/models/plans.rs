//! The plans of a model: training step, optimiser update, evaluation, prediction.
//!
//! All share one arena of parameters; each has activations of its own, placed by lifetime.

use std::sync::Arc;

use super::config::ModelConfig;
use super::decoder;
use crate::error::Result;
use crate::nn::Batch;
use crate::nn::residual::{Gate, Routing};
use crate::ops::cross_entropy::cross_entropy;
use crate::optim::{STATUS_LEN, UpdateConfig, record_loss, record_update};
use crate::params::Parameters;
use crate::plan::{External, Limits, Plan};
use crate::tape::Tape;

/// Input of every plan but the update: token numbers `[rows]`.
pub const IDS: &str = "ids";
/// Input: the token that follows each of [`IDS`], `[rows]`.
pub const LABELS: &str = "labels";
/// Output: `[rows, vocab]`.
pub const LOGITS: &str = "logits";
/// Output: mean cross-entropy `[1]`.
pub const LOSS: &str = "loss";
/// Output: cross-entropy of each row `[rows]`.
pub const ROW_LOSSES: &str = "row losses";

/// A plan of a model, and what it publishes.
#[derive(Debug)]
pub struct ModelPlan {
    /// The plan.
    pub plan: Plan,
    /// The batch that it is made for.
    pub batch: Batch,
    /// Depth weights, if it was recorded watching.
    pub routing: Vec<Routing>,
    /// Gates, if it was recorded watching.
    pub gates: Vec<Gate>,
}

/// How a training plan is recorded.
#[derive(Clone, Copy, Debug)]
pub struct Training {
    /// Batch of one forward and backward pass.
    pub batch: Batch,
    /// Passes per update; each loss, and so each gradient, is divided by it.
    pub accumulate: u32,
    /// Recompute activations instead of keeping them.
    pub checkpoint: bool,
    /// Publish logits, depth weights and gates.
    pub watch: bool,
}

/// Forward and backward pass: reads `ids` and `labels`, adds to the gradients and to the status buffer's loss.
///
/// # Errors
/// If the model cannot be recorded or does not fit `limits`; here and below.
pub fn training(
    config: &ModelConfig,
    parameters: &Arc<Parameters>,
    how: &Training,
    limits: &Limits,
) -> Result<ModelPlan> {
    let mut tape = Tape::new(parameters.clone())
        .watching(how.watch)
        .checkpointing(how.checkpoint);
    let ids = tape.input_ints(IDS, [how.batch.rows()]);
    let labels = tape.input_ints(LABELS, [how.batch.rows()]);
    let forward = decoder::forward(&mut tape, config, how.batch, ids)?;
    let loss = tape.scope("loss", |tape| {
        cross_entropy(
            tape,
            forward.logits,
            labels,
            1.0 / f64::from(how.accumulate),
        )
    })?;
    tape.watch(|| LOGITS.into(), forward.logits);
    tape.watch(|| LOSS.into(), loss.loss);
    let one = tape.constant("one", [1], vec![1.0]);
    tape.backward(&[(loss.loss, one)])?;
    let status = tape.external(External::Status, STATUS_LEN);
    record_loss(&mut tape, loss.loss, status)?;
    let plan = tape.finish(limits)?;
    Ok(ModelPlan {
        plan,
        batch: how.batch,
        routing: forward.routing,
        gates: forward.gates,
    })
}

/// The optimiser's update.
///
/// # Errors
/// As [`training`].
pub fn update(
    parameters: &Arc<Parameters>,
    config: &UpdateConfig,
    limits: &Limits,
) -> Result<Plan> {
    let mut tape = Tape::new(parameters.clone());
    record_update(&mut tape, config, limits.binding)?;
    tape.finish(limits)
}

/// Forward pass with losses: reads `ids` and `labels`, gives `row losses`, and, watching, depth weights and gates.
///
/// # Errors
/// As [`training`].
pub fn evaluation(
    config: &ModelConfig,
    parameters: &Arc<Parameters>,
    batch: Batch,
    watch: bool,
    limits: &Limits,
) -> Result<ModelPlan> {
    let mut tape = Tape::new(parameters.clone()).watching(watch);
    let ids = tape.input_ints(IDS, [batch.rows()]);
    let labels = tape.input_ints(LABELS, [batch.rows()]);
    let forward = decoder::forward(&mut tape, config, batch, ids)?;
    let loss = tape.scope("loss", |tape| {
        cross_entropy(tape, forward.logits, labels, 1.0)
    })?;
    tape.output(ROW_LOSSES, loss.row_losses);
    tape.output(LOGITS, forward.logits);
    let plan = tape.finish(limits)?;
    Ok(ModelPlan {
        plan,
        batch,
        routing: forward.routing,
        gates: forward.gates,
    })
}

/// Forward pass: reads `ids`, gives `logits`.
///
/// # Errors
/// As [`training`].
pub fn prediction(
    config: &ModelConfig,
    parameters: &Arc<Parameters>,
    batch: Batch,
    limits: &Limits,
) -> Result<ModelPlan> {
    let mut tape = Tape::new(parameters.clone());
    let ids = tape.input_ints(IDS, [batch.rows()]);
    let forward = decoder::forward(&mut tape, config, batch, ids)?;
    tape.output(LOGITS, forward.logits);
    let plan = tape.finish(limits)?;
    Ok(ModelPlan {
        plan,
        batch,
        routing: forward.routing,
        gates: forward.gates,
    })
}
