//! A training session: steps, validations, checkpoints and records, in the order that makes a run repeatable.
//!
//! The caller drives it ([`Session::advance`] does one step and whatever is due after it) and shows the records that come
//! back. It has no clock of its own and prints nothing, so that a window and a browser can drive it as well.

mod live;

pub use live::{Rest, SAFE_FIELDS};

use braid_engine::analysis::{ExpertLoad, SiteStats};
use braid_engine::checkpoint::{self, SCHEMA, State};
use braid_engine::data::Dataset;
use braid_engine::device::{AdapterKind, Device};
use braid_engine::executor::is_non_finite;
use braid_engine::models::config::ModelConfig;
use braid_engine::trainer::{Evaluation, Look, StepResult, Trainer};
use braid_engine::{Error, Result};

use crate::config::RunConfig;
use crate::records::Record;
use crate::run_dir::{CheckpointFiles, RunWriter, checkpoint_name};

/// Losses are read back at least this often, in seconds, so that a slow device shows progress.
const PATIENCE: f64 = 0.5;

/// Submissions that may wait on the device.
const MOST_IN_FLIGHT: usize = 4;

/// Gives seconds since some moment.
pub type Clock = Box<dyn Fn() -> f64>;

/// What a session needs.
pub struct Start<'a> {
    /// How to train.
    pub config: RunConfig,
    /// What to train.
    pub model: ModelConfig,
    /// On what.
    pub data: Dataset,
    /// Where.
    pub device: &'a Device,
    /// Where to keep it; without, its last checkpoint is kept in memory.
    pub run: Option<RunWriter>,
    /// Stop after this many updates; at most `train.steps`.
    pub until: u64,
    /// For rates.
    pub clock: Clock,
}

impl std::fmt::Debug for Start<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Start")
            .field("config", &self.config)
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

/// Why a training stopped by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diverged {
    /// The update that failed.
    pub step: u64,
    /// The first tensor that was not finite, if it was found.
    pub tensor: Option<String>,
    /// A sentence with what to do.
    pub message: String,
}

impl Diverged {
    fn record(&self) -> Record {
        Record::Error {
            step: self.step,
            code: "non_finite",
            tensor: self.tensor.clone(),
            message: self.message.clone(),
        }
    }
}

/// A training in progress.
pub struct Session {
    trainer: Trainer,
    config: RunConfig,
    run: Option<RunWriter>,
    /// The last checkpoint of a run that has no folder.
    kept: Option<CheckpointFiles>,
    device: String,
    on_cpu: bool,
    fingerprint: String,
    until: u64,
    clock: Clock,
    /// When it would have begun had there been no pauses.
    began: f64,
    /// Time and step of the last rate.
    measured: (f64, u64),
    /// Seconds in which the device was waited for, or computed on the CPU.
    device_seconds: f64,
    saved: Option<u64>,
    best: Option<(f64, u64)>,
    last: Option<StepResult>,
    evaluation: Option<Evaluation>,
    /// The last look, and after how many updates it was taken.
    looked: Option<(u64, Look)>,
    diverged: Option<Diverged>,
    /// Sentences that have not been shown.
    notices: Vec<String>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("trainer", &self.trainer)
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

/// What a checkpoint says about the device. On one machine, two with the same name compute the same bits.
#[must_use]
pub fn device_name(device: &Device) -> String {
    let report = device.report();
    match report.kind {
        // The CPU's bits do not depend on its number of threads.
        AdapterKind::Host => report.name.clone(),
        _ => report.to_string(),
    }
}

/// Seed and data have to be those that a checkpoint was made with.
fn refuse_other_run(state: &State, config: &RunConfig, fingerprint: &str) -> Result<()> {
    if state.data != fingerprint {
        return Err(Error::File(format!(
            "the data are not those that this run was trained on (fingerprint {}, now {fingerprint}); \
             bring the old ones back, or begin a new run",
            state.data
        )));
    }
    if state.seed != config.train.seed {
        return Err(Error::File(format!(
            "the checkpoint was trained with seed {}, config.toml says {}; set it back, or begin a new run",
            state.seed, config.train.seed
        )));
    }
    Ok(())
}

/// A training goes on without its frames and texts.
fn without(what: &str, result: Result<()>) -> Option<String> {
    let error = result.err()?;
    Some(format!(
        "{error}; the training goes on, but records no {what}"
    ))
}

impl Session {
    /// Allocate and load everything; parameters have their initial values.
    ///
    /// # Errors
    /// If the configuration is impossible, or does not fit the device.
    pub fn new(start: Start<'_>) -> Result<Self> {
        let Start {
            config,
            model,
            data,
            device,
            run,
            until,
            clock,
        } = start;
        let fingerprint = data.fingerprint();
        let trainer = Trainer::new(device.executor(), model, config.train_config(), data)?;
        let began = clock();
        Ok(Self {
            trainer,
            until: until.min(config.train.steps),
            config,
            run,
            kept: None,
            device: device_name(device),
            on_cpu: device.gpu().is_none(),
            fingerprint,
            clock,
            began,
            measured: (began, 0),
            device_seconds: 0.0,
            saved: None,
            best: None,
            last: None,
            evaluation: None,
            looked: None,
            diverged: None,
            notices: Vec::new(),
        })
    }

    /// Go on from a checkpoint. Returns sentences to show.
    ///
    /// # Errors
    /// If the checkpoint is damaged, or belongs to another run.
    pub fn restore(&mut self, files: &CheckpointFiles) -> Result<Vec<String>> {
        let Some(state) = &files.state else {
            return Err(Error::File(
                "the checkpoint has no state.json; use another one of the run".into(),
            ));
        };
        let state = checkpoint::read_state(state)?;
        refuse_other_run(&state, &self.config, &self.fingerprint)?;
        let tensors = checkpoint::read(
            self.trainer.parameters(),
            &files.model,
            files.optimizer.as_deref(),
        )?;
        let moments = tensors
            .moments
            .as_ref()
            .map(|(first, second)| (first.as_slice(), second.as_slice()));
        self.trainer.restore(state.step, &tensors.values, moments)?;
        let mut notices = Vec::new();
        if moments.is_none() {
            notices.push(
                "the checkpoint has no moments: the optimiser begins anew, so the loss may jump"
                    .into(),
            );
        }
        if state.device != self.device {
            notices.push(format!(
                "the run was trained on {}, and goes on on {}: from here on its bits differ from those of a run on one device",
                state.device, self.device
            ));
        }
        self.best = state.best;
        self.saved = Some(state.step);
        (self.diverged, self.looked) = (None, None);
        self.measured = ((self.clock)(), state.step);
        if let Some(run) = &mut self.run {
            run.rewind_metrics(state.step)?;
            let path = format!("checkpoints/{}", checkpoint_name(state.step));
            run.ensure_saved_record(state.step, path)?;
            notices.extend(without("frames", run.rewind_frames(state.step)));
            notices.extend(without("texts", run.rewind_samples(state.step)));
        }
        Ok(notices)
    }

    /// Forget the metric lines and frames of a run that was stopped before its first checkpoint.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn restart(&mut self) -> Result<()> {
        match &mut self.run {
            Some(run) => {
                self.notices.extend(without("frames", run.rewind_frames(0)));
                self.notices.extend(without("texts", run.rewind_samples(0)));
                run.rewind_metrics(0)
            }
            None => Ok(()),
        }
    }

    /// Sentences since the last call that a person should see.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// The trainer.
    #[must_use]
    pub fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    /// Its configuration.
    #[must_use]
    pub fn config(&self) -> &RunConfig {
        &self.config
    }

    /// Stops after so many updates.
    #[must_use]
    pub fn until(&self) -> u64 {
        self.until
    }

    /// Whether there is nothing left to do.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.diverged.is_some() || self.trainer.steps_done() >= self.until
    }

    /// Why it stopped by itself, if it did.
    #[must_use]
    pub fn diverged(&self) -> Option<&Diverged> {
        self.diverged.as_ref()
    }

    /// Result of the last update that has been read back.
    #[must_use]
    pub fn last(&self) -> Option<StepResult> {
        self.last
    }

    /// The last look at the validation part.
    #[must_use]
    pub fn evaluation(&self) -> Option<Evaluation> {
        self.evaluation
    }

    /// The last routing weights.
    #[must_use]
    pub fn sites(&self) -> &[SiteStats] {
        self.looked.as_ref().map_or(&[], |(_, look)| &look.sites)
    }

    /// The last use of experts; empty without.
    #[must_use]
    pub fn experts(&self) -> &[ExpertLoad] {
        self.looked.as_ref().map_or(&[], |(_, look)| &look.experts)
    }

    /// The last checkpoint: updates done.
    #[must_use]
    pub fn saved(&self) -> Option<u64> {
        self.saved
    }

    /// One update, and what is due after it.
    ///
    /// # Errors
    /// If the device fails or something cannot be written. A training that diverges is no error: see [`Session::diverged`].
    pub async fn advance(&mut self) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        if self.saved.is_none() {
            // So that there is always something to go on from.
            records.extend(self.save(false).await?);
        }
        if self.is_over() {
            return Ok(records);
        }
        let before = (self.clock)();
        self.trainer.step()?;
        if self.on_cpu {
            self.device_seconds += (self.clock)() - before;
        }
        let (step, train) = (self.trainer.steps_done(), &self.config.train);
        let end = step >= self.until;
        // A stop before the end of the schedule leaves no records of its own, so that a run in parts has those of a run in
        // one go.
        let evaluates = step >= train.steps || step.is_multiple_of(train.eval_every);
        let saves = end || step.is_multiple_of(train.save_every);
        // A device that falls behind is waited for: so progress is shown, Ctrl-C is heard, and no wait is long.
        let late = (self.clock)() - self.measured.0 > PATIENCE
            || self.trainer.in_flight()? > MOST_IN_FLIGHT;
        if !(evaluates || saves || late || self.trainer.ring_is_full()) {
            return Ok(records);
        }
        records.extend(self.collect().await?);
        if self.diverged.is_some() {
            return Ok(records);
        }
        let mut best = false;
        if evaluates {
            let (found, better) = self.evaluate().await?;
            records.extend(found);
            best = better;
        }
        if saves || best {
            records.extend(self.save(best).await?);
        }
        if end && !evaluates {
            self.look().await?;
        }
        if evaluates || saves {
            // Rates are those of training alone.
            self.measured.0 = (self.clock)();
        }
        Ok(records)
    }

    /// Read what is outstanding, and save: to stop here, or to be able to go on from here.
    ///
    /// # Errors
    /// If the device fails or something cannot be written.
    pub async fn interrupt(&mut self) -> Result<Vec<Record>> {
        let mut records = self.collect().await?;
        if self.diverged.is_none() {
            records.extend(self.save(false).await?);
        }
        // Rates are those of training alone.
        self.measured.0 = (self.clock)();
        Ok(records)
    }

    /// The record of the end.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(&mut self) -> Result<Record> {
        let run = self
            .run
            .as_ref()
            .map(|run| run.run().path().display().to_string());
        let record = Record::Done {
            step: self.trainer.steps_done(),
            loss: self.last.map(|last| last.loss),
            val_loss: self.evaluation.map(|evaluation| evaluation.val_loss),
            run: run.unwrap_or_default(),
        };
        self.write(std::slice::from_ref(&record))?;
        Ok(record)
    }

    fn write(&mut self, records: &[Record]) -> Result<()> {
        match &mut self.run {
            Some(run) => run.append(records),
            None => Ok(()),
        }
    }

    /// Losses since the last look.
    async fn collect(&mut self) -> Result<Vec<Record>> {
        let before = (self.clock)();
        let results = self.trainer.collect().await?;
        let now = (self.clock)();
        self.device_seconds += now - before;
        let (then, step) = self.measured;
        self.measured = (now, self.trainer.steps_done());
        let tokens_per_step =
            u64::from(self.config.batch().rows()) * u64::from(self.config.train.accumulate);
        let tokens = (self.trainer.steps_done() - step) * tokens_per_step;
        let tokens_per_s = tokens as f64 / (now - then).max(1e-9);
        let mut records = Vec::new();
        let count = results.len() as f64;
        for (place, result) in results.into_iter().enumerate() {
            // Nobody knows when each of them was done: they are spread evenly.
            let share = (place + 1) as f64 / count;
            records.push(Record::Train {
                step: result.step,
                loss: result.loss,
                objective: result.auxiliary.map(|_| result.objective()),
                balance: result.auxiliary.map(|parts| parts.balance),
                z: result.auxiliary.map(|parts| parts.z),
                lr: result.lr,
                grad_norm: result.grad_norm,
                tokens: result.step * tokens_per_step,
                tokens_per_s,
                seconds: then + share * (now - then) - self.began,
            });
            if !result.ok {
                let diverged = self.explain(result).await?;
                records.push(diverged.record());
                self.diverged = Some(diverged);
                break;
            }
            self.last = Some(result);
        }
        self.write(&records)?;
        Ok(records)
    }

    async fn explain(&mut self, result: StepResult) -> Result<Diverged> {
        let found = self.trainer.explain(result.step).await?;
        let (tensor, computed_by) = match found {
            Some(found) => (Some(found.tensor), found.step),
            None if !result.loss.is_finite() => (Some("loss".into()), "the step".into()),
            None => (Some("norm of the gradient".into()), "the step".into()),
        };
        Ok(self.give_up(result.step, tensor, &computed_by))
    }

    /// What to say about a step that was not finite.
    fn give_up(&self, step: u64, tensor: Option<String>, computed_by: &str) -> Diverged {
        let kept = match self.saved {
            Some(0) => "; the initial checkpoint is kept".into(),
            Some(saved) => format!("; the checkpoint of step {saved} is kept"),
            None => String::new(),
        };
        let message = format!(
            "the training diverged at step {step}: `{}` (computed by {computed_by}) is the first tensor that is not finite{kept}. \
             Lower train.lr (it is {}) or raise train.warmup ({})",
            tensor.as_deref().unwrap_or("loss"),
            self.config.train.lr,
            self.config.train.warmup
        );
        Diverged {
            step,
            tensor,
            message,
        }
    }

    /// Validation loss and routing weights, for whoever asks.
    async fn look(&mut self) -> Result<Evaluation> {
        let evaluation = self.trainer.evaluate().await?;
        let look = self.trainer.look().await?;
        self.looked = Some((self.trainer.steps_done(), look));
        self.evaluation = Some(evaluation);
        Ok(evaluation)
    }

    /// Validation loss and routing weights, with their records; whether the loss is the best so far.
    async fn evaluate(&mut self) -> Result<(Vec<Record>, bool)> {
        let step = self.trainer.steps_done();
        let evaluation = self.look().await?;
        let mut records = vec![Record::Eval {
            step,
            val_loss: evaluation.val_loss,
            val_tokens: evaluation.tokens,
            bits_per_byte: evaluation.bits_per_byte,
            accuracy: evaluation.accuracy,
        }];
        let (sites, experts) = (self.sites(), self.experts());
        if !sites.is_empty() {
            records.push(Record::Routing {
                step,
                sites: sites.to_vec(),
            });
        }
        if !experts.is_empty() {
            records.push(Record::Experts {
                step,
                layers: experts.to_vec(),
            });
        }
        self.write(&records)?;
        let frame = self.frame().await?;
        self.keep_frame(&frame, false);
        let finite = evaluation.val_loss.is_finite();
        let better = finite && self.best.is_none_or(|(best, _)| evaluation.val_loss < best);
        if better {
            self.best = Some((evaluation.val_loss, step));
        }
        Ok((records, better))
    }

    /// Write a checkpoint, unless this step has one.
    async fn save(&mut self, best: bool) -> Result<Vec<Record>> {
        let step = self.trainer.steps_done();
        if self.saved == Some(step) && !best {
            return Ok(Vec::new());
        }
        let files = match self.checkpoint().await? {
            Ok(files) => files,
            Err(diverged) => {
                let record = diverged.record();
                self.diverged = Some(diverged);
                self.write(std::slice::from_ref(&record))?;
                return Ok(vec![record]);
            }
        };
        let mut records = Vec::new();
        match &mut self.run {
            Some(run) => {
                let path = run.save(step, &files, best)?;
                records.push(Record::Saved { step, path });
            }
            None => self.kept = Some(files),
        }
        self.write(&records)?;
        self.saved = Some(step);
        Ok(records)
    }

    /// The files of a checkpoint of this moment; refused if the last update has left numbers that are not finite.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn checkpoint(&mut self) -> Result<Result<CheckpointFiles, Diverged>> {
        let [values, first, second] = self.trainer.tensors().await?;
        let parameters = self.trainer.parameters();
        for (what, arena) in [
            ("", &values),
            ("first moment of ", &first),
            ("second moment of ", &second),
        ] {
            if let Some(offset) = arena.iter().position(|&value| is_non_finite(value)) {
                let tensor = format!("{what}{}", parameters.name_at(offset).unwrap_or("padding"));
                return Ok(Err(self.give_up(
                    self.trainer.steps_done(),
                    Some(tensor),
                    "the update",
                )));
            }
        }
        let state = State {
            schema: SCHEMA,
            step: self.trainer.steps_done(),
            seed: self.config.train.seed,
            data: self.fingerprint.clone(),
            best: self.best,
            device: self.device.clone(),
        };
        let mut state = serde_json::to_string_pretty(&state).expect("numbers and texts are JSON");
        state.push('\n');
        Ok(Ok(CheckpointFiles {
            model: checkpoint::model_file(parameters, &values)?,
            optimizer: Some(checkpoint::optimizer_file(parameters, &first, &second)?),
            state: Some(state),
        }))
    }
}
