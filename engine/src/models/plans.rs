//! The plans of a model: training step, optimiser update, evaluation, prediction.
//!
//! All share one arena of parameters; each has activations of its own, placed by lifetime.

use std::ops::Range;
use std::sync::Arc;

use super::config::ModelConfig;
use super::{decoder, norms};
use crate::error::Result;
use crate::models::config::ExpertGate;
use crate::nn::Batch;
use crate::nn::experts::{self, Losses, Routed};
use crate::nn::residual::{Gate, Routing, States};
use crate::ops::cross_entropy::cross_entropy;
use crate::ops::kl_divergence::kl_divergence;
use crate::optim::{
    STATUS_BALANCE, STATUS_LEN, STATUS_Z, UpdateConfig, expert_bias, pieces, record_loss,
    record_part, record_update,
};
use crate::params::{ALIGNMENT, Parameters};
use crate::plan::{External, Limits, Plan};
use crate::tape::{Tape, Tensor};

/// Input of every plan but the update: token numbers `[rows]`.
pub const IDS: &str = "ids";
/// Input: the token that follows each of [`IDS`], `[rows]`.
pub const LABELS: &str = "labels";
/// Output: `[rows, vocab]`.
pub const LOGITS: &str = "logits";
/// Output: mean cross-entropy `[1]`.
pub const LOSS: &str = "loss";
/// Output: sum of the balance losses of all experts, coefficient included `[1]`.
pub const BALANCE: &str = "loss.balance";
/// Output: sum of the z-losses of all routers, coefficient included `[1]`.
pub const Z: &str = "loss.z";
/// Output: cross-entropy of each row `[rows]`.
pub const ROW_LOSSES: &str = "row losses";

/// Input of [`analysis`]: the logits that others are compared with, `[rows, vocab]`.
pub const CLEAN_LOGITS: &str = "clean logits";
/// Output of [`analysis`]: divergence of the logits from the clean ones, `[rows]`, nats.
pub const DIVERGENCE: &str = "divergence";

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
    /// Layers with experts; their gates and statistics are published if it was recorded watching.
    pub experts: Vec<Routed>,
    /// States, if it was recorded for analyses.
    pub states: States,
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

/// Forward and backward pass: reads `ids` and `labels`, adds to the gradients and to the status buffer's losses. The gradients
/// are those of the objective: the cross-entropy and the auxiliary losses of experts.
///
/// # Errors
/// If the model cannot be recorded or does not fit `limits`; here and below.
pub fn training(
    config: &ModelConfig,
    parameters: &Arc<Parameters>,
    how: &Training,
    limits: &Limits,
) -> Result<ModelPlan> {
    record_training(Tape::new(parameters.clone()), config, how, limits)
}

/// As [`training`], with a buffer for every tensor, so that single ops can run again (see [`Tape::sharing`]).
///
/// # Errors
/// As [`training`].
pub fn training_apart(
    config: &ModelConfig,
    parameters: &Arc<Parameters>,
    how: &Training,
    limits: &Limits,
) -> Result<ModelPlan> {
    let tape = Tape::new(parameters.clone()).sharing(false);
    record_training(tape, config, how, limits)
}

fn record_training(
    tape: Tape,
    config: &ModelConfig,
    how: &Training,
    limits: &Limits,
) -> Result<ModelPlan> {
    let mut tape = tape.watching(how.watch).checkpointing(how.checkpoint);
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
    let scale = 1.0 / f64::from(how.accumulate);
    let auxiliary = expert_losses(&mut tape, config, how.batch, &forward.experts, scale)?;
    let one = tape.constant("one", [1], vec![1.0]);
    let mut objective = vec![(loss.loss, one)];
    let parts = auxiliary_parts(config, auxiliary.as_ref());
    objective.extend(parts.iter().map(|&(part, _)| (part, one)));
    tape.backward(&objective)?;
    let status = tape.external(External::Status, STATUS_LEN);
    record_loss(&mut tape, loss.loss, status)?;
    for (part, entry) in parts {
        record_part(&mut tape, part, entry, status)?;
    }
    if let (true, Some(losses)) = (has_selection_bias(config), &auxiliary) {
        for (routed, &counts) in forward.experts.iter().zip(&losses.statistics) {
            let bias = experts::selection_bias(routed.layer);
            expert_bias::count(&mut tape, &bias, counts)?;
        }
    }
    let plan = tape.finish(limits)?;
    Ok(ModelPlan {
        plan,
        batch: how.batch,
        routing: forward.routing,
        gates: forward.gates,
        experts: forward.experts,
        states: forward.states,
    })
}

/// The auxiliary losses of experts, published if the tape is watching.
fn expert_losses(
    tape: &mut Tape,
    config: &ModelConfig,
    batch: Batch,
    layers: &[Routed],
    scale: f64,
) -> Result<Option<Losses>> {
    let Some(moe) = config.experts() else {
        return Ok(None);
    };
    let losses = experts::losses(tape, moe, batch, layers, scale)?;
    if let Some(losses) = &losses {
        tape.watch(|| BALANCE.into(), losses.balance);
        tape.watch(|| Z.into(), losses.z);
    }
    Ok(losses)
}

/// The auxiliary losses that are not switched off, and where the status buffer adds them up.
fn auxiliary_parts(config: &ModelConfig, losses: Option<&Losses>) -> Vec<(Tensor, usize)> {
    let (Some(moe), Some(losses)) = (config.experts(), losses) else {
        return Vec::new();
    };
    let all = [
        (moe.aux_loss, losses.balance, STATUS_BALANCE),
        (moe.z_loss, losses.z, STATUS_Z),
    ];
    let on = all
        .into_iter()
        .filter(|&(coefficient, ..)| coefficient > 0.0);
    on.map(|(_, loss, entry)| (loss, entry)).collect()
}

fn has_selection_bias(config: &ModelConfig) -> bool {
    let moe = config.experts();
    moe.is_some_and(|moe| moe.gate == ExpertGate::SigmoidBias)
}

/// The update: the optimiser's, and that of the selection bias of experts.
///
/// # Errors
/// As [`training`].
pub fn update(
    model: &ModelConfig,
    parameters: &Arc<Parameters>,
    config: &UpdateConfig,
    limits: &Limits,
) -> Result<Plan> {
    let mut tape = Tape::new(parameters.clone());
    record_update(&mut tape, config, limits.binding)?;
    if let (true, Some(moe)) = (has_selection_bias(model), model.experts()) {
        for layer in 0..model.num_hidden_layers {
            let bias = experts::selection_bias(layer);
            expert_bias::record(&mut tape, &bias, moe.bias_update_rate)?;
        }
    }
    tape.finish(limits)
}

/// Sums of squares of the gradient that the last step has left, one for each site: see [`norms::gradient_name`].
///
/// # Errors
/// As [`training`].
pub fn gradient_norms(
    model: &ModelConfig,
    parameters: &Arc<Parameters>,
    limits: &Limits,
) -> Result<Plan> {
    let mut tape = Tape::new(parameters.clone());
    let whole = parameters.arena_len();
    let most = usize::try_from(limits.binding / limits.float).unwrap_or(usize::MAX);
    let sublayers = model.sublayers();
    for site in 0..=sublayers {
        let own = parameters.trained();
        let own = own.filter(|(_, spec)| decoder::site_of(spec, sublayers) == Some(site));
        let mut own: Vec<_> = own.map(|(number, _)| parameters.range(number)).collect();
        own.sort_by_key(|range| range.start);
        // Neighbours in the arena in one piece: the padding between them is zero.
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for range in own {
            match ranges.last_mut() {
                Some(last) if last.end.next_multiple_of(ALIGNMENT) == range.start => {
                    last.end = range.end;
                }
                _ => ranges.push(range),
            }
        }
        let ranges = ranges.into_iter().flat_map(|range| pieces(range, most));
        let parts: Vec<Tensor> = ranges
            .map(|range| tape.external_range(External::Grads, whole, range))
            .collect();
        let sum = norms::sum_of_squares(&mut tape, &parts)?;
        tape.output(&norms::gradient_name(site), sum);
    }
    tape.finish(limits)
}

/// Forward pass with losses: reads `ids` and `labels`, gives `row losses`, and, watching, depth weights, gates and the use of
/// experts.
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
    let tape = Tape::new(parameters.clone()).watching(watch);
    record_evaluation(tape, config, batch, limits)
}

/// As [`evaluation`], but every depth mix can be edited: reads `edit.0`, `edit.1`, .. besides, one for each entry of
/// `routing`, in that order.
///
/// # Errors
/// As [`training`].
pub fn intervention(
    config: &ModelConfig,
    parameters: &Arc<Parameters>,
    batch: Batch,
    limits: &Limits,
) -> Result<ModelPlan> {
    let tape = Tape::new(parameters.clone()).editing(true);
    record_evaluation(tape, config, batch, limits)
}

/// As [`intervention`], and everything that analyses look at and replace: publishes depth weights, gates, the use of experts,
/// states and sizes of each row; states can be replaced and routing frozen ([`mod@crate::nn::residual::states`]).
///
/// # Errors
/// As [`training`].
pub fn analysis(
    config: &ModelConfig,
    parameters: &Arc<Parameters>,
    batch: Batch,
    limits: &Limits,
) -> Result<ModelPlan> {
    let tape = Tape::new(parameters.clone()).analysing();
    record_evaluation(tape, config, batch, limits)
}

/// Forward and backward pass of the sum of all rows' cross-entropies: publishes the size of its gradient with respect to what
/// each sublayer gave, row by row ([`norms::output_gradient_name`]). Adds to the gradients of the parameters, like any backward pass.
///
/// # Errors
/// As [`training`].
pub fn output_gradients(
    config: &ModelConfig,
    parameters: &Arc<Parameters>,
    batch: Batch,
    limits: &Limits,
) -> Result<Plan> {
    let mut tape = Tape::new(parameters.clone());
    let ids = tape.input_ints(IDS, [batch.rows()]);
    let labels = tape.input_ints(LABELS, [batch.rows()]);
    let forward = decoder::forward(&mut tape, config, batch, ids)?;
    // The sum, not the mean: the gradient of a row does not depend on how many others there are.
    let rows = f64::from(batch.rows());
    let loss = cross_entropy(&mut tape, forward.logits, labels, rows)?;
    let one = tape.constant("one", [1], vec![1.0]);
    tape.backward(&[(loss.loss, one)])?;
    for (site, &output) in forward.outputs.iter().enumerate() {
        if let Some(gradient) = tape.gradient(output) {
            norms::publish_rows(
                &mut tape,
                &norms::output_gradient_name(site as u32),
                gradient,
            )?;
        }
    }
    tape.finish(limits)
}

fn record_evaluation(
    mut tape: Tape,
    config: &ModelConfig,
    batch: Batch,
    limits: &Limits,
) -> Result<ModelPlan> {
    let ids = tape.input_ints(IDS, [batch.rows()]);
    let labels = tape.input_ints(LABELS, [batch.rows()]);
    let forward = decoder::forward(&mut tape, config, batch, ids)?;
    let loss = tape.scope("loss", |tape| {
        cross_entropy(tape, forward.logits, labels, 1.0)
    })?;
    if tape.is_watching() {
        expert_losses(&mut tape, config, batch, &forward.experts, 1.0)?;
    }
    if tape.is_analysing() {
        let clean = tape.input(CLEAN_LOGITS, forward.logits.shape);
        let divergence = kl_divergence(&mut tape, clean, forward.logits)?;
        tape.output(DIVERGENCE, divergence);
    }
    tape.output(ROW_LOSSES, loss.row_losses);
    tape.output(LOGITS, forward.logits);
    let plan = tape.finish(limits)?;
    Ok(ModelPlan {
        plan,
        batch,
        routing: forward.routing,
        gates: forward.gates,
        experts: forward.experts,
        states: forward.states,
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
        experts: forward.experts,
        states: forward.states,
    })
}
