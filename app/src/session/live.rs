//! What a front end asks of a session in progress. Nothing here changes what a step computes, but for [`Session::set`].

use braid_engine::data::Dataset;
use braid_engine::models::config::ModelConfig;
use braid_engine::ops::edit_weights::RouteEdit;
use braid_engine::trainer::{DepthNorm, SiteEdit};
use braid_engine::{Error, Result, checkpoint};

use super::{Session, without};
use crate::config::RunConfig;
use crate::protocol::{
    self, Depth, Effect, Frame, Intervention, Sampled, Trace, TraceSite, Unfolded,
};
use crate::records::Record;
use crate::run_dir::{CheckpointFiles, RunWriter};

/// Fields that may change while a run goes on: the plans do not contain them.
pub const SAFE_FIELDS: [&str; 8] = [
    "train.lr",
    "train.min_lr",
    "train.warmup",
    "train.schedule",
    "train.steps",
    "train.eval_every",
    "train.eval_batches",
    "train.save_every",
];

/// What is left of a session whose device is gone: everything but what lay on it.
#[derive(Debug)]
pub struct Rest {
    /// How it was trained.
    pub config: RunConfig,
    /// What was trained.
    pub model: ModelConfig,
    /// On what.
    pub data: Dataset,
    /// Stops after so many updates.
    pub until: u64,
    /// Where it is kept, if it has a folder.
    pub run: Option<RunWriter>,
    /// Its last checkpoint, if it has none.
    pub kept: Option<CheckpointFiles>,
}

impl Session {
    /// Keep the run in this folder from now on.
    pub fn keep_in(&mut self, run: RunWriter) {
        self.run = Some(run);
    }

    /// Give up the device.
    #[must_use]
    pub fn into_rest(self) -> Rest {
        let (model, data) = self.trainer.into_model_and_data();
        Rest {
            config: self.config,
            model,
            data,
            until: self.until,
            run: self.run,
            kept: self.kept,
        }
    }

    /// Go on from the last checkpoint of a run that has no folder, and keep it. Returns sentences to show.
    ///
    /// # Errors
    /// As [`Session::restore`].
    pub fn restore_kept(&mut self, files: CheckpointFiles) -> Result<Vec<String>> {
        let notices = self.restore(&files);
        self.kept = Some(files);
        notices
    }

    /// Back to the last checkpoint of a run that has no folder. Returns sentences to show.
    ///
    /// # Errors
    /// If there is none yet, and as [`Session::restore`].
    pub fn rewind_kept(&mut self) -> Result<Vec<String>> {
        let Some(files) = self.kept.take() else {
            return Err(Error::File(
                "this run has no checkpoint yet, so there is none to go back to".into(),
            ));
        };
        self.restore_kept(files)
    }

    /// Begin with the parameters of a `model.safetensors` instead of the initial ones.
    ///
    /// # Errors
    /// If it is damaged, or belongs to another model.
    pub fn adopt(&mut self, model: &[u8]) -> Result<()> {
        let tensors = checkpoint::read(self.trainer.parameters(), model, None)?;
        self.trainer.restore(0, &tensors.values, None)
    }

    /// Read what is outstanding; save nothing.
    ///
    /// # Errors
    /// If the device fails or something cannot be written.
    pub async fn settle(&mut self) -> Result<Vec<Record>> {
        self.collect().await
    }

    /// After a pause, in which no time counts.
    pub fn restart_clock(&mut self) {
        let now = (self.clock)();
        self.began += now - self.measured.0;
        self.measured.0 = now;
    }

    /// Seconds in which the device was waited for, or computed on the CPU.
    #[must_use]
    pub fn device_seconds(&self) -> f64 {
        self.device_seconds
    }

    /// What the model does at this moment; the look of a validation is not taken twice.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn frame(&mut self) -> Result<Frame> {
        let step = self.trainer.steps_done();
        let look = match &self.looked {
            Some((at, look)) if *at == step => look.clone(),
            _ => self.trainer.look().await?,
        };
        let sites = serde_json::to_value(&look.sites).and_then(serde_json::from_value);
        let depth = |depth: &DepthNorm| Depth {
            site: depth.site,
            input: depth.input,
            output: depth.output,
            gradient: depth.gradient,
        };
        Ok(Frame {
            step,
            tokens: look.tokens,
            sites: sites.unwrap_or_default(),
            depth: look.depth.iter().map(depth).collect(),
            unfolded: look.unfolded.map(|rows| Unfolded { rows }),
        })
    }

    /// Record a frame in the run's folder, if it is due; `always`: even if it is not.
    pub fn keep_frame(&mut self, frame: &Frame, always: bool) {
        if let Some(run) = &mut self.run {
            self.notices
                .extend(without("frames", run.keep_frame(frame, always)));
        }
    }

    /// Keep a text that the model wrote in the run's folder.
    pub fn keep_sample(&mut self, sample: &Sampled) {
        if let Some(run) = &mut self.run {
            self.notices
                .extend(without("texts", run.keep_sample(sample)));
        }
    }

    /// The parameters of this moment.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn values(&mut self) -> Result<Vec<f32>> {
        self.trainer.values().await
    }

    /// Change one of [`SAFE_FIELDS`] to a TOML value, and say so in the run's `config.toml` and metrics.
    ///
    /// # Errors
    /// If the field is not safe, or the value is refused; everything is as before then.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        if !SAFE_FIELDS.contains(&key) {
            let message = format!(
                "cannot change while a run goes on; these can: {}. Begin a new run for the others",
                SAFE_FIELDS.join(", ")
            );
            return Err(Error::config(key, message));
        }
        let mut settings = vec![format!("{key}={value}")];
        // A lower rate takes the final one along: the decay ends at most at the rate.
        if let ("train.lr", Ok(lr)) = (key, value.parse::<f64>())
            && lr < self.config.train.min_lr
        {
            settings.push(format!("train.min_lr={value}"));
        }
        let config = RunConfig::parse(&self.config.to_toml(), &settings)?;
        let step = self.trainer.steps_done();
        if config.train.steps < step {
            let message = format!("is {}; {step} updates are done already", config.train.steps);
            return Err(Error::config("train.steps", message));
        }
        if let Some(run) = &mut self.run {
            run.set_config(&config.to_toml())?;
        }
        let until = self.until == self.config.train.steps;
        if until {
            self.until = config.train.steps;
        }
        self.config = config;
        let training = self.config.train_config();
        self.trainer
            .reschedule(training.schedule, training.eval_batches);
        let record = Record::Changed {
            step,
            key: key.into(),
            value: value.into(),
        };
        self.write(&[record])
    }

    /// Depth weights token by token on a text; an empty one: the first validation sequence.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn trace(&mut self, text: &str) -> Result<Trace> {
        let context = self.config.model.context as usize;
        let data = self.trainer.data();
        let tokenizer = data.tokenizer().clone();
        let mut ids = if text.is_empty() {
            let shape = braid_engine::data::BatchShape { batch: 1, context };
            data.eval_batch(0, shape).ids
        } else {
            tokenizer.encode(text).ids
        };
        ids.truncate(context);
        let step = self.trainer.steps_done();
        let weights = self.trainer.depth_weights(&ids).await?;
        let site = |read: braid_engine::trainer::TokenWeights| TraceSite {
            site: read.routing.site,
            stream: read.routing.stream as usize,
            sources: read.routing.sources,
            weights: read.weights,
        };
        Ok(Trace {
            step,
            tokens: ids.iter().map(|&id| tokenizer.token_text(id)).collect(),
            sites: weights.into_iter().map(site).collect(),
        })
    }

    /// Held-out loss with and without edits of the routes, over at most `batches` batches.
    ///
    /// # Errors
    /// If the mechanism has no depth weights, an edit names a source that does not exist, or the device fails.
    pub async fn intervene(&mut self, edits: Vec<Intervention>, batches: usize) -> Result<Effect> {
        let site_edit = |edit: &Intervention| SiteEdit {
            site: edit.site,
            stream: edit.stream as u32,
            edit: match edit.edit {
                protocol::RouteEdit::Cut { source } => RouteEdit::Cut(source),
                protocol::RouteEdit::Pin { source } => RouteEdit::Pin(source),
                protocol::RouteEdit::Swap { a, b } => RouteEdit::Swap(a, b),
                protocol::RouteEdit::Uniform => RouteEdit::Uniform,
            },
        };
        let site_edits: Vec<SiteEdit> = edits.iter().map(site_edit).collect();
        let step = self.trainer.steps_done();
        let losses = self.trainer.held_out(&site_edits, batches).await?;
        let n = losses.clean.len().max(1) as f64;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / n;
        let pairs = losses.edited.iter().zip(&losses.clean);
        let differences: Vec<f64> = pairs.map(|(edited, clean)| edited - clean).collect();
        let middle = mean(&differences);
        let squares: f64 = differences.iter().map(|d| (d - middle).powi(2)).sum();
        Ok(Effect {
            step,
            edits,
            clean: mean(&losses.clean),
            edited: mean(&losses.edited),
            // Of the mean difference; one batch says nothing about its noise.
            error: if differences.len() > 1 {
                (squares / (n - 1.0) / n).sqrt()
            } else {
                f64::NAN
            },
            batches: differences.len(),
        })
    }
}
