//! Training: batches in, losses out.
//!
//! [`Trainer::step`] writes a batch, submits and returns; it never waits. Losses pile up in a ring on the device until
//! [`Trainer::collect`] reads them: call it at least every [`RING`] steps (`step` insists).
//!
//! Everything random follows from the seed and the number of the step, so a run that is restored at step `n` goes on with
//! the same bits as one that never stopped.

use std::collections::HashSet;
use std::sync::Arc;

use crate::data::{BatchShape, Dataset, Draw};
use crate::error::{Error, Result, bytes_for_people};
use crate::executor::{Counts, Data, Executor, NonFinite, is_non_finite};
use crate::kernel::Kernel;
use crate::models::config::ModelConfig;
use crate::models::decoder;
use crate::models::plans::{self, ModelPlan};
use crate::nn::Batch;
use crate::nn::experts::Routed;
use crate::nn::residual::{Gate, Routing};
use crate::optim::{
    RING, RING_WIDTH, STATUS_RING, Schedule, StepScalars, UpdateConfig, ring_entry,
};
use crate::params::Parameters;
use crate::plan::{External, Limits, MemoryReport};
use crate::runtime::{Loaded, Runtime};

mod look;
pub mod study;

pub use look::{DepthNorm, HeldOut, Look, SiteEdit, TokenWeights};
pub use study::{Study, StudyOptions};

/// What is trained how.
#[derive(Clone, Debug)]
pub struct TrainConfig {
    /// Sequences and tokens of one forward and backward pass.
    pub batch: Batch,
    /// Passes per update.
    pub accumulate: u32,
    /// Recompute activations instead of keeping them.
    pub checkpoint: bool,
    /// Learning rate over time.
    pub schedule: Schedule,
    /// The optimiser.
    pub update: UpdateConfig,
    /// Seed of initial values and batches.
    pub seed: u64,
    /// Validation batches; 0: the whole validation part.
    pub eval_batches: usize,
}

/// One finished step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepResult {
    /// Number of the step, from 1.
    pub step: u64,
    /// Mean cross-entropy of its batch, before the update; nats.
    pub loss: f64,
    /// The auxiliary losses of experts; `None` without.
    pub auxiliary: Option<Auxiliary>,
    /// Norm of the gradient, before clipping.
    pub grad_norm: f64,
    /// Learning rate.
    pub lr: f64,
    /// Whether loss and norm were finite. If not, this and later steps have changed nothing.
    pub ok: bool,
}

/// What the objective has besides the cross-entropy: sums over all layers, coefficients included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Auxiliary {
    /// Losses for an even use of experts.
    pub balance: f64,
    /// Losses for small logits of the routers.
    pub z: f64,
}

impl StepResult {
    /// What was minimised: cross-entropy and auxiliary losses.
    #[must_use]
    pub fn objective(&self) -> f64 {
        let more = self.auxiliary.map_or(0.0, |parts| parts.balance + parts.z);
        self.loss + more
    }
}

/// A look at the validation part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evaluation {
    /// Mean cross-entropy; nats.
    pub val_loss: f64,
    /// Tokens that it is a mean over.
    pub tokens: u64,
    /// The loss as bits per byte of text, which does not depend on the tokenizer:
    /// `val_loss * tokens / (ln 2 * bytes of these tokens)`; files only.
    pub bits_per_byte: Option<f64>,
    /// Share of answer positions where the most likely token is right; tasks only.
    pub accuracy: Option<f64>,
}

/// Bytes that a training needs, before anything is allocated.
#[derive(Clone, Debug)]
pub struct MemoryPlan {
    /// Parameters, gradients and two moments.
    pub parameters: u64,
    /// Forward and backward pass.
    pub training: MemoryReport,
    /// Evaluation, with and without depth weights.
    pub evaluation: MemoryReport,
    /// The optimiser's update: partial sums of the norm and, with Muon, stacks of matrices.
    pub update: MemoryReport,
    /// Kernel calls of one step, update included.
    pub steps: usize,
}

impl MemoryPlan {
    /// All bytes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.parameters + self.training.planned + self.evaluation.planned + self.update.planned
    }
}

/// The plans of a training, not yet on any device.
#[derive(Debug)]
struct Plans {
    parameters: Arc<Parameters>,
    train: ModelPlan,
    update: crate::plan::Plan,
    eval: ModelPlan,
    watch: ModelPlan,
}

impl Plans {
    fn record(model: &ModelConfig, config: &TrainConfig, limits: &Limits) -> Result<Self> {
        model.validate()?;
        check_size(model, config.batch)?;
        let parameters = Arc::new(decoder::parameters(model)?);
        let arena = parameters.arena_len() as u64 * limits.float;
        if arena > limits.buffer {
            return Err(Error::Memory {
                tensor: format!("the buffer of all {} parameters", parameters.count()),
                need: bytes_for_people(arena),
                limit: format!(
                    "a buffer of this device holds {}",
                    bytes_for_people(limits.buffer)
                ),
                advice: "lower model.width or model.layers, or raise the limits (--raise-limits)"
                    .into(),
            });
        }
        let how = plans::Training {
            batch: config.batch,
            accumulate: config.accumulate,
            checkpoint: config.checkpoint,
            watch: false,
        };
        let plans = Self {
            train: plans::training(model, &parameters, &how, limits)?,
            update: plans::update(model, &parameters, &config.update, limits)?,
            eval: plans::evaluation(model, &parameters, config.batch, false, limits)?,
            watch: plans::evaluation(model, &parameters, config.batch, true, limits)?,
            parameters,
        };
        let memory = plans.memory(limits);
        if let Some(total) = limits.total.filter(|&total| memory.total() > total) {
            let people = bytes_for_people;
            let (tensor, bytes) = memory.training.largest.first().cloned().unwrap_or_default();
            return Err(Error::Memory {
                tensor: format!(
                    "this training (largest tensor: `{tensor}`, {})",
                    people(bytes)
                ),
                need: people(memory.total()),
                limit: format!("{} of memory are available", people(total)),
                advice: "lower train.batch, model.context, model.width or model.layers".into(),
            });
        }
        Ok(plans)
    }

    fn kernels(&self) -> Vec<&'static Kernel> {
        let plans = [
            &self.train.plan,
            &self.update,
            &self.eval.plan,
            &self.watch.plan,
        ];
        let mut seen = HashSet::new();
        let steps = plans.into_iter().flat_map(|plan| &plan.steps);
        let kernels = steps.map(|step| step.kernel);
        kernels.filter(|kernel| seen.insert(kernel.id())).collect()
    }

    fn memory(&self, limits: &Limits) -> MemoryPlan {
        let mut evaluation = self.eval.plan.memory.clone();
        evaluation.planned += self.watch.plan.memory.planned;
        evaluation.unshared += self.watch.plan.memory.unshared;
        MemoryPlan {
            parameters: 4 * self.parameters.arena_len() as u64 * limits.float,
            training: self.train.plan.memory.clone(),
            evaluation,
            update: self.update.memory.clone(),
            steps: self.train.plan.steps.len() + self.update.steps.len(),
        }
    }
}

/// The most elements of one tensor: kernels number them with 32 bits.
const MOST_ELEMENTS: u64 = 1 << 30;

/// Refuse batches whose widest tensor has too many elements.
fn check_size(model: &ModelConfig, batch: Batch) -> Result<()> {
    let rows = u64::from(batch.sequences) * u64::from(batch.context);
    let hidden = match model.experts() {
        None => model.intermediate_size,
        // A token has a row for each of its experts, and the router a number for each expert.
        Some(moe) => {
            let rows = moe
                .top_k
                .saturating_mul(moe.intermediate_size.max(model.hidden_size));
            rows.max(moe.experts)
        }
    };
    let widths = [
        model.hidden_size,
        hidden,
        model.query_width(),
        model.vocab_size,
    ];
    let width = u64::from(widths.into_iter().max().unwrap_or(1));
    let residual = model
        .residual
        .widest(model.num_hidden_layers, model.hidden_size);
    let elements = rows * width.max(residual);
    if elements > MOST_ELEMENTS {
        let message = format!(
            "times model.context is {rows} tokens, and the largest tensor would have {elements} elements; at most \
             {MOST_ELEMENTS} are possible: lower it and raise train.accumulate"
        );
        return Err(Error::config("train.batch", message));
    }
    Ok(())
}

/// What a training would need, without allocating anything.
///
/// # Errors
/// If the model cannot be recorded, or does not fit `limits`.
pub fn plan_memory(
    model: &ModelConfig,
    config: &TrainConfig,
    limits: &Limits,
) -> Result<MemoryPlan> {
    Ok(preview(model, config, limits)?.memory)
}

/// What is known about a training before anything is allocated.
#[derive(Debug)]
pub struct Preview {
    /// What it needs.
    pub memory: MemoryPlan,
    /// Names and shapes of the parameters.
    pub parameters: Arc<Parameters>,
    /// Which site reads which sources.
    pub routing: Vec<Routing>,
    /// The kernels that it runs, each once, in the order of their first use.
    pub kernels: Vec<&'static Kernel>,
}

/// Record a training's plans, allocate nothing.
///
/// # Errors
/// As [`plan_memory`].
pub fn preview(model: &ModelConfig, config: &TrainConfig, limits: &Limits) -> Result<Preview> {
    let plans = Plans::record(model, config, limits)?;
    Ok(Preview {
        memory: plans.memory(limits),
        kernels: plans.kernels(),
        routing: plans.watch.routing,
        parameters: plans.parameters,
    })
}

/// A training in progress.
pub struct Trainer {
    runtime: Runtime,
    model: ModelConfig,
    config: TrainConfig,
    data: Dataset,
    train: Loaded,
    update: Loaded,
    eval: Loaded,
    watch: Loaded,
    edited: Option<look::Edited>,
    gradients: look::Gradients,
    routing: Vec<Routing>,
    gates: Vec<Gate>,
    experts: Vec<Routed>,
    memory: MemoryPlan,
    step: u64,
    collected: u64,
    ids: Vec<u32>,
    labels: Vec<u32>,
}

impl std::fmt::Debug for Trainer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trainer")
            .field("step", &self.step)
            .finish_non_exhaustive()
    }
}

impl Trainer {
    /// Record, place and load everything; parameters have their initial values.
    ///
    /// # Errors
    /// If the configuration is impossible or does not fit the device.
    pub fn new(
        executor: Box<dyn Executor>,
        model: ModelConfig,
        config: TrainConfig,
        data: Dataset,
    ) -> Result<Self> {
        let limits = executor.limits();
        let plans = Plans::record(&model, &config, &limits)?;
        let memory = plans.memory(&limits);
        let mut runtime = Runtime::new(executor, plans.parameters.clone())?;
        let initial = plans.parameters.initial_values(config.seed);
        runtime.write_external(External::Values, Data::F32(&initial))?;
        let rows = config.batch.rows() as usize;
        Ok(Self {
            train: runtime.load_model(&plans.train)?,
            update: runtime.load(&plans.update)?,
            eval: runtime.load_model(&plans.eval)?,
            watch: runtime.load_model(&plans.watch)?,
            edited: None,
            gradients: look::Gradients::default(),
            routing: plans.watch.routing,
            gates: plans.watch.gates,
            experts: plans.watch.experts,
            runtime,
            model,
            config,
            data,
            memory,
            step: 0,
            collected: 0,
            ids: vec![0; rows],
            labels: vec![0; rows],
        })
    }

    /// Updates submitted so far.
    #[must_use]
    pub fn steps_done(&self) -> u64 {
        self.step
    }

    /// Tokens seen so far.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.step * u64::from(self.config.batch.rows()) * u64::from(self.config.accumulate)
    }

    /// What is trained on.
    #[must_use]
    pub fn data(&self) -> &Dataset {
        &self.data
    }

    /// The model's configuration.
    #[must_use]
    pub fn model(&self) -> &ModelConfig {
        &self.model
    }

    /// Names and places of the parameters.
    #[must_use]
    pub fn parameters(&self) -> &Arc<Parameters> {
        self.runtime.parameters()
    }

    /// What is left of it when its device is gone: the model and the data.
    #[must_use]
    pub fn into_model_and_data(self) -> (ModelConfig, Dataset) {
        (self.model, self.data)
    }

    /// What it needs.
    #[must_use]
    pub fn memory(&self) -> &MemoryPlan {
        &self.memory
    }

    /// Running totals of the executor.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.runtime.counts()
    }

    /// Whether [`Trainer::collect`] has to come before the next step.
    #[must_use]
    pub fn ring_is_full(&self) -> bool {
        self.step - self.collected >= RING as u64
    }

    /// Submissions that the device has not finished: a caller that sees several should collect before it goes on.
    ///
    /// # Errors
    /// If the device fails.
    pub fn in_flight(&mut self) -> Result<usize> {
        self.runtime.in_flight()
    }

    /// Submit one update.
    ///
    /// # Errors
    /// If the device fails, or losses of [`RING`] steps have not been collected.
    pub fn step(&mut self) -> Result<()> {
        if self.ring_is_full() {
            return Err(Error::Op {
                op: "step",
                message: format!("collect the losses at least every {RING} steps"),
            });
        }
        let number = self.step + 1;
        for micro in 0..self.config.accumulate {
            self.write_batch(number, micro)?;
            let last = micro + 1 == self.config.accumulate;
            if last {
                self.write_scalars(number)?;
                self.runtime
                    .submit(micro == 0, &[&self.train, &self.update])?;
            } else {
                self.runtime.submit(micro == 0, &[&self.train])?;
            }
        }
        self.step = number;
        self.gradients.exist = true;
        Ok(())
    }

    /// The shape of all batches.
    fn shape(&self) -> BatchShape {
        let Batch { sequences, context } = self.config.batch;
        BatchShape {
            batch: sequences as usize,
            context: context as usize,
        }
    }

    fn write_batch(&mut self, step: u64, micro: u32) -> Result<()> {
        let draw = Draw {
            seed: self.config.seed,
            step,
            micro,
        };
        self.data
            .train_batch(draw, self.shape(), &mut self.ids, &mut self.labels);
        self.runtime
            .write_batch(&self.train, &self.ids, &self.labels)
    }

    fn write_scalars(&mut self, step: u64) -> Result<()> {
        let UpdateConfig { beta1, beta2, .. } = self.config.update;
        self.runtime.write_scalars(&StepScalars {
            lr: self.config.schedule.rate(step - 1),
            step,
            beta1,
            beta2,
        })
    }

    /// Read the losses of all steps since the last call.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn collect(&mut self) -> Result<Vec<StepResult>> {
        let first = self.collected + 1;
        if first > self.step {
            return Ok(Vec::new());
        }
        let status = self.runtime.read_external(External::Status).await?.to_f64();
        self.collected = self.step;
        let result = |step: u64| {
            let entry = &status[ring_entry(step)..][..RING_WIDTH];
            let (loss, grad_norm, ok) = (entry[0], entry[1], entry[2] > 0.5);
            StepResult {
                step,
                loss,
                auxiliary: self.model.experts().map(|_| Auxiliary {
                    balance: entry[3],
                    z: entry[4],
                }),
                grad_norm,
                lr: self.config.schedule.rate(step - 1),
                ok,
            }
        };
        Ok((first..=self.step).map(result).collect())
    }

    /// Mean loss over the validation part.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn evaluate(&mut self) -> Result<Evaluation> {
        let shape = self.shape();
        let batches = self.data.eval_batch_count(shape, self.config.eval_batches);
        let (mut sum, mut tokens, mut right, mut answers) = (0.0, 0_u64, 0_u64, 0_u64);
        let mut bytes = Some(0);
        let vocab = self.model.vocab_size as usize;
        for index in 0..batches {
            let batch = self.data.eval_batch(index, shape);
            self.runtime
                .write_batch(&self.eval, &batch.ids, &batch.labels)?;
            self.runtime.submit(false, &[&self.eval])?;
            let mut wanted = vec![plans::ROW_LOSSES.to_owned()];
            wanted.extend((!batch.answers.is_empty()).then(|| plans::LOGITS.to_owned()));
            let read = self.runtime.read(&self.eval, &wanted).await?;
            sum += read[0].to_f64()[..batch.counted].iter().sum::<f64>();
            tokens += batch.counted as u64;
            for &label in &batch.labels[..batch.counted] {
                let length = self.data.tokenizer().token_bytes(label);
                bytes = bytes.zip(length).map(|(sum, length)| sum + length);
            }
            if let Some(logits) = read.get(1) {
                let logits = logits.to_f64();
                for &row in &batch.answers {
                    right += u64::from(
                        most_likely(&logits[row * vocab..][..vocab]) == batch.labels[row],
                    );
                }
                answers += batch.answers.len() as u64;
            }
        }
        let accuracy = (answers > 0).then(|| right as f64 / answers as f64);
        Ok(Evaluation {
            val_loss: sum / tokens.max(1) as f64,
            tokens,
            bits_per_byte: bytes
                .filter(|&bytes| bytes > 0)
                .map(|bytes| sum / (std::f64::consts::LN_2 * bytes as f64)),
            accuracy,
        })
    }

    /// Go on with another schedule, or more or fewer validation batches. What the plans contain stays as it is.
    pub fn reschedule(&mut self, schedule: Schedule, eval_batches: usize) {
        (self.config.schedule, self.config.eval_batches) = (schedule, eval_batches);
    }

    /// The parameters alone, in the layout of the arena.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn values(&mut self) -> Result<Vec<f32>> {
        Ok(self
            .runtime
            .read_external(External::Values)
            .await?
            .into_f32())
    }

    /// Parameters and both moments, in the layout of the arena.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn tensors(&mut self) -> Result<[Vec<f32>; 3]> {
        let mut all = Vec::new();
        for external in [
            External::Values,
            External::FirstMoment,
            External::SecondMoment,
        ] {
            all.push(self.runtime.read_external(external).await?.into_f32());
        }
        all.try_into().map_err(|_| Error::Op {
            op: "tensors",
            message: "three arenas".into(),
        })
    }

    /// Go on from a checkpoint: `step` updates are done.
    ///
    /// # Errors
    /// If the arenas do not fit.
    pub fn restore(
        &mut self,
        step: u64,
        values: &[f32],
        moments: Option<(&[f32], &[f32])>,
    ) -> Result<()> {
        self.runtime
            .write_external(External::Values, Data::F32(values))?;
        if let Some((first, second)) = moments {
            self.runtime
                .write_external(External::FirstMoment, Data::F32(first))?;
            self.runtime
                .write_external(External::SecondMoment, Data::F32(second))?;
        }
        self.runtime
            .write_external(External::Status, Data::F32(&[0.0; STATUS_RING]))?;
        (self.step, self.collected) = (step, step);
        self.gradients.exist = false;
        Ok(())
    }

    /// After a step that was not finite: run it again, kernel by kernel, and name the first tensor that is not. The
    /// parameters are still those from before that step.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn explain(&mut self, step: u64) -> Result<Option<NonFinite>> {
        let values = self
            .runtime
            .read_external(External::Values)
            .await?
            .into_f32();
        if let Some(offset) = values.iter().position(|&value| is_non_finite(value)) {
            let tensor = self
                .parameters()
                .name_at(offset)
                .unwrap_or("padding")
                .to_owned();
            return Ok(Some(NonFinite {
                step: "parameters".into(),
                tensor,
                element: offset,
            }));
        }
        for micro in 0..self.config.accumulate {
            self.write_batch(step, micro)?;
            self.runtime.submit(micro == 0, &[])?;
            if let Some(found) = self.runtime.find_non_finite(&self.train).await? {
                return Ok(Some(named(found)));
            }
        }
        self.write_scalars(step)?;
        Ok(self.runtime.find_non_finite(&self.update).await?.map(named))
    }
}

/// The token with the largest logit; the lower one wins a tie.
fn most_likely(logits: &[f64]) -> u32 {
    (0..logits.len()).fold(0, |best, token| {
        if logits[token] > logits[best] {
            token
        } else {
            best
        }
    }) as u32
}

/// The status buffer holds the loss and the gradient's norm: say which.
fn named(found: NonFinite) -> NonFinite {
    let tensor = match found.tensor.as_str() {
        "Status" if found.step.starts_with("update") => "norm of the gradient".into(),
        "Status" => "loss".into(),
        _ => found.tensor,
    };
    NonFinite { tensor, ..found }
}
