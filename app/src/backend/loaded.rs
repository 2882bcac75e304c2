//! A run that is loaded: its session, and what a front end wants to know about it.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use braid_engine::data::{Dataset, Tokenizer};
use braid_engine::device::Device;
use braid_engine::models::config::ModelConfig;
use braid_engine::sample::Sampling;
use braid_engine::trainer::preview;
use braid_engine::{Error, Result, checkpoint};

use super::folders::chance;
use super::pace::Pace;
use super::{Sink, Surroundings};
use crate::config::RunConfig;
use crate::form::values;
use crate::protocol::{
    Draft, Effect, Event, Frame, Intervention, Line, RunInfo, RunState, Sampled, SiteKind, Timing,
    Trace,
};
use crate::records::Record;
use crate::run_dir::{Identity, RunDir, RunWriter, Which, read_checkpoint};
use crate::sampler::{Sampler, parameters};
use crate::session::{Rest, Session, Start, device_name};
use crate::{frame_log, sample_log, texts};

/// Held-out batches that an intervention is measured on, at most.
const EFFECT_BATCHES: usize = 8;

/// A session and its surroundings.
#[derive(Debug)]
pub(super) struct Loaded {
    session: Session,
    device: Device,
    folder: Option<PathBuf>,
    surroundings: Surroundings,
    pace: Pace,
    /// When the last checkpoint was written or tried, or the run was loaded.
    saved_at: f64,
    /// What the metrics file held when the run was opened.
    lines: Vec<Line>,
    /// What was recorded of its routing.
    frames: Vec<Frame>,
    /// What its model wrote.
    samples: Vec<Sampled>,
    /// It was loaded before, and has no folder that its records could be read from.
    again: bool,
    finished: bool,
}

/// What is left of a run whose device is gone.
#[derive(Debug)]
pub(super) struct Lost {
    rest: Rest,
    folder: Option<PathBuf>,
}

/// Records as a front end reads them.
fn lines(records: &[Record]) -> Vec<Line> {
    let line = |record: &Record| {
        let value = serde_json::to_value(record).ok()?;
        serde_json::from_value(value).ok()
    };
    records.iter().filter_map(line).collect()
}

fn clock(surroundings: &Surroundings) -> crate::session::Clock {
    let clock = Rc::clone(&surroundings.clock);
    Box::new(move || clock())
}

/// A draft that has been read: all but the device.
#[derive(Debug)]
pub(super) struct Prepared {
    config: RunConfig,
    data: Dataset,
    model: ModelConfig,
    /// A text that is not a file of this machine: the run keeps it.
    text: Option<Vec<u8>>,
    /// A `model.safetensors` to begin with.
    weights: Option<Vec<u8>>,
}

impl Prepared {
    /// Read the configuration and its text.
    pub(super) fn of(draft: &Draft, sink: Sink<'_>) -> Result<Self> {
        let config = RunConfig::parse(&draft.toml, &[])?;
        let text = draft.text.as_ref().map(|(_, bytes)| bytes.as_slice());
        let mut progress = |done: usize, of: usize| {
            // Not every merge: a front end has better things to do.
            if done.is_multiple_of(64) {
                sink(Event::State(RunState::Preparing {
                    stage: "learning tokens from the text".into(),
                    done: done as u32,
                    of: of as u32,
                }));
            }
        };
        let data = texts::dataset(&config, text, None, &mut progress)?;
        let model = config.model_config(data.vocab_size())?;
        Ok(Self {
            config,
            data,
            model,
            text: draft.text.as_ref().map(|(_, bytes)| bytes.clone()),
            weights: None,
        })
    }

    /// Begin with these parameters.
    ///
    /// # Errors
    /// If the file is damaged, or belongs to another model.
    pub(super) fn with_weights(mut self, weights: Vec<u8>) -> Result<Self> {
        checkpoint::read(&*parameters(&self.model)?, &weights, None)?;
        self.weights = Some(weights);
        Ok(self)
    }
}

/// Compile what a training runs, one kernel after the other, so that a window can show how far it is.
async fn compile(
    model: &ModelConfig,
    config: &RunConfig,
    device: &Device,
    sink: Sink<'_>,
) -> Result<()> {
    if device.gpu().is_none() {
        return Ok(());
    }
    let limits = device.executor().limits();
    let kernels = preview(model, &config.train_config(), &limits)?.kernels;
    for (done, kernel) in kernels.iter().enumerate() {
        sink(Event::State(RunState::Preparing {
            stage: "compiling shaders".into(),
            done: done as u32,
            of: kernels.len() as u32,
        }));
        device.compile(kernel).await?;
    }
    Ok(())
}

impl Loaded {
    /// A new run.
    pub(super) async fn begin(
        prepared: Prepared,
        device: &Device,
        folder: Option<PathBuf>,
        surroundings: &Surroundings,
        sink: Sink<'_>,
    ) -> Result<Self> {
        let Prepared {
            config,
            data,
            model,
            text,
            weights,
        } = prepared;
        for message in data.notices() {
            sink(Event::Notice {
                message: message.clone(),
            });
        }
        compile(&model, &config, device, sink).await?;
        let (toml, json) = (config.to_toml(), model.to_json());
        let tokenizer = data.tokenizer().to_json();
        // The folder comes last: a run that cannot be allocated leaves none behind.
        let start = Start {
            until: config.train.steps,
            config,
            model,
            data,
            device,
            run: None,
            clock: clock(surroundings),
        };
        let mut session = device.watched(|| Session::new(start)).await?;
        if let Some(folder) = &folder {
            let identity = Identity {
                config_toml: &toml,
                config_json: &json,
                tokenizer_json: &tokenizer,
                text: text.as_deref(),
            };
            session.keep_in(RunWriter::create(folder, &identity)?);
        }
        let mut loaded = Self::new(session, device, folder, surroundings);
        if let Some(weights) = weights {
            loaded.session.adopt(&weights)?;
            // Else a run that is closed before its first step would forget them.
            let records = loaded.session.interrupt().await?;
            loaded.tell(&records, sink);
        }
        Ok(loaded)
    }

    /// A run from disk, at its last checkpoint.
    pub(super) async fn open(
        folder: &Path,
        device: &Device,
        surroundings: &Surroundings,
        sink: Sink<'_>,
    ) -> Result<Self> {
        RunDir::bring(folder).await?;
        let run = RunDir::open(folder)?;
        let config = RunConfig::parse(&run.config_toml()?, &[])?;
        let tokenizer = Tokenizer::from_json(&run.tokenizer_json()?)?;
        let text = run.text()?;
        let data = texts::dataset(&config, text.as_deref(), Some(&tokenizer), &mut |_, _| {})?;
        let model = config.model_config(data.vocab_size())?;
        run.same_model(&model)?;
        let recorded = frame_log::read(folder);
        compile(&model, &config, device, sink).await?;
        let writer = RunWriter::resume(folder)?;
        let checkpoint = run.checkpoint(Which::Last)?;
        let files = checkpoint.as_deref().map(read_checkpoint).transpose()?;
        let start = Start {
            until: config.train.steps,
            config,
            model,
            data,
            device,
            run: Some(writer),
            clock: clock(surroundings),
        };
        let mut session = device.watched(|| Session::new(start)).await?;
        let notices = match &files {
            Some(files) => session.restore(files)?,
            None => {
                session.restart()?;
                vec!["the run has no checkpoint yet: it begins anew".into()]
            }
        };
        for message in notices.into_iter().chain(recorded.notice) {
            sink(Event::Notice { message });
        }
        let mut loaded = Self::new(session, device, Some(folder.into()), surroundings);
        loaded.notify(sink);
        loaded.lines = Line::read(&run.metrics()?);
        loaded.frames = recorded.frames;
        let step = loaded.step();
        loaded.frames.retain(|frame| frame.step <= step);
        // Read after the file was cut to the checkpoint.
        match sample_log::read(folder) {
            Ok(samples) => loaded.samples = samples,
            Err(error) => sink(Event::Notice {
                message: format!("{error}; the texts of this run are not shown"),
            }),
        }
        Ok(loaded)
    }

    /// The run again, on another device, at its last checkpoint. If it cannot be allocated, `lost` is as it was.
    pub(super) async fn again(
        lost: &mut Lost,
        device: &Device,
        surroundings: &Surroundings,
        sink: Sink<'_>,
    ) -> Result<Self> {
        let Rest {
            config,
            model,
            data,
            until,
            ..
        } = &lost.rest;
        compile(model, config, device, sink).await?;
        let start = Start {
            until: *until,
            config: config.clone(),
            model: model.clone(),
            data: data.clone(),
            device,
            run: None,
            clock: clock(surroundings),
        };
        let mut session = device.watched(|| Session::new(start)).await?;
        if let Some(folder) = &lost.folder {
            RunDir::bring(folder).await?;
        }
        let run = lost.folder.as_deref().map(RunDir::open).transpose()?;
        let checkpoint = match &run {
            Some(run) => run.checkpoint(Which::Last)?,
            None => None,
        };
        let files = match checkpoint.as_deref().map(read_checkpoint).transpose()? {
            Some(files) => Some(files),
            None => lost.rest.kept.take(),
        };
        if let Some(writer) = lost.rest.run.take() {
            session.keep_in(writer);
        }
        let notices = match files {
            Some(files) if run.is_some() => session.restore(&files)?,
            Some(files) => session.restore_kept(files)?,
            None => {
                session.restart()?;
                Vec::new()
            }
        };
        for message in notices {
            sink(Event::Notice { message });
        }
        let mut loaded = Self::new(session, device, lost.folder.clone(), surroundings);
        loaded.notify(sink);
        match run {
            Some(run) => {
                loaded.lines = Line::read(&run.metrics()?);
                loaded.samples = sample_log::read(run.path()).unwrap_or_default();
            }
            None => loaded.again = true,
        }
        Ok(loaded)
    }

    /// Give up the device.
    pub(super) fn into_lost(self) -> Lost {
        Lost {
            rest: self.session.into_rest(),
            folder: self.folder,
        }
    }

    fn new(
        session: Session,
        device: &Device,
        folder: Option<PathBuf>,
        surroundings: &Surroundings,
    ) -> Self {
        Self {
            finished: session.is_over(),
            session,
            device: device.clone(),
            folder,
            surroundings: surroundings.clone(),
            pace: Pace::default(),
            saved_at: (surroundings.clock)(),
            lines: Vec::new(),
            frames: Vec::new(),
            samples: Vec::new(),
            again: false,
        }
    }

    fn now(&self) -> f64 {
        (self.surroundings.clock)()
    }

    /// What to ask for its device by.
    pub(super) fn choice(&self) -> String {
        self.device.report().choice()
    }

    /// Where it is kept.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        self.folder.clone()
    }

    /// The last checkpoint: updates done.
    pub(super) fn good(&self) -> u64 {
        self.session.saved().unwrap_or(0)
    }

    /// The text that is learnt, by the name that its configuration has for it.
    pub(super) fn text_name(&self) -> Option<&str> {
        self.session.config().data.file.as_deref()
    }

    /// Updates done.
    pub(super) fn step(&self) -> u64 {
        self.session.trainer().steps_done()
    }

    /// The last validation loss.
    pub(super) fn val_loss(&self) -> Option<f64> {
        self.session.evaluation().map(|last| last.val_loss)
    }

    /// Why it cannot go on, if it cannot.
    pub(super) fn end(&self) -> Option<RunState> {
        if let Some(diverged) = self.session.diverged() {
            return Some(RunState::Diverged {
                step: diverged.step,
                tensor: diverged.tensor.clone(),
                message: diverged.message.clone(),
                good: self.session.saved(),
            });
        }
        self.session.is_over().then_some(RunState::Finished)
    }

    /// For a front end.
    pub(super) fn info(&mut self) -> RunInfo {
        let lines = std::mem::take(&mut self.lines);
        let frames = std::mem::take(&mut self.frames);
        let samples = std::mem::take(&mut self.samples);
        let config = self.session.config();
        let sublayers = self.session.trainer().model().sublayers();
        RunInfo {
            folder: self
                .folder
                .as_ref()
                .map(|folder| folder.display().to_string())
                .unwrap_or_default(),
            name: format!("{} {}", config.residual.kind(), config.data_name()),
            toml: config.to_toml(),
            values: values(&config.to_toml()),
            device: device_name(&self.device),
            step: self.step(),
            steps: config.train.steps,
            sites: (0..=sublayers)
                .map(|site| (site, SiteKind::of(site, sublayers)))
                .collect(),
            bytes: self.session.trainer().memory().total(),
            saved: self.session.saved(),
            lines,
            frames,
            samples,
            chance: chance(config),
            again: std::mem::take(&mut self.again),
        }
    }

    /// After a pause: what was waited for is not training time.
    pub(super) fn restart_clock(&mut self) {
        self.session.restart_clock();
    }

    /// One update and what is due after it; a frame, if there is time for one.
    pub(super) async fn advance(&mut self, share: f64, sink: Sink<'_>) -> Result<()> {
        let (began, device) = (self.now(), self.session.device_seconds());
        let records = self.session.advance().await?;
        let now = self.now();
        self.pace
            .step(now - began, self.session.device_seconds() - device);
        self.tell(&records, sink);
        // The look of a validation is a frame that costs nothing.
        let looked = |record: &Record| matches!(record, Record::Eval { .. });
        if records.iter().any(looked) || self.pace.frame_is_due(now, share) {
            self.frame(false, sink).await?;
        }
        self.notify(sink);
        if let Some(timing) = self.pace.report(now) {
            sink(Event::Timing(Timing {
                memory: (self.surroundings.used_memory)(),
                ..timing
            }));
        }
        Ok(())
    }

    fn tell(&mut self, records: &[Record], sink: Sink<'_>) {
        for record in records {
            if let Record::Saved { step, path } = record {
                self.saved_at = self.now();
                sink(Event::Saved {
                    step: *step,
                    path: path.clone(),
                });
            }
        }
        let lines = lines(records);
        if !lines.is_empty() {
            sink(Event::Lines(lines));
        }
    }

    /// Read what is outstanding.
    pub(super) async fn settle(&mut self, sink: Sink<'_>) -> Result<()> {
        let records = self.session.settle().await?;
        self.tell(&records, sink);
        Ok(())
    }

    /// The routing of this moment, shown and recorded; `always`: recorded even if it is not due.
    pub(super) async fn frame(&mut self, always: bool, sink: Sink<'_>) -> Result<()> {
        let began = self.now();
        let frame = self.session.frame().await?;
        self.session.keep_frame(&frame, always);
        sink(Event::Frame(Box::new(frame)));
        let now = self.now();
        self.pace.frame(now, now - began);
        self.notify(sink);
        Ok(())
    }

    /// A text is complete: keep it, and show it.
    pub(super) fn sampled(&mut self, sampled: Sampled, sink: Sink<'_>) {
        self.session.keep_sample(&sampled);
        sink(Event::Sampled(Box::new(sampled)));
        self.notify(sink);
    }

    /// Show what the session has noticed.
    fn notify(&mut self, sink: Sink<'_>) {
        for message in self.session.take_notices() {
            sink(Event::Notice { message });
        }
    }

    /// Write a checkpoint.
    pub(super) async fn save(&mut self, sink: Sink<'_>) -> Result<()> {
        if self.folder.is_none() {
            return Err(Error::File(
                "this run is not kept in a folder, so it cannot be saved there".into(),
            ));
        }
        if let Some(RunState::Diverged { good, .. }) = self.end() {
            let kept = good.map_or_else(String::new, |step| {
                format!("; the checkpoint of step {step} is kept")
            });
            return Err(Error::File(format!(
                "the run has diverged, and what is not finite is not saved{kept}"
            )));
        }
        let records = self.session.interrupt().await?;
        if records.is_empty() {
            sink(Event::Notice {
                message: format!("step {} is saved already", self.step()),
            });
        }
        self.tell(&records, sink);
        Ok(())
    }

    /// Write a checkpoint if the last one is `seconds` old. If that fails, the training goes on, and it is tried again as much
    /// later.
    ///
    /// # Errors
    /// If the device fails.
    pub(super) async fn autosave(&mut self, seconds: f64, sink: Sink<'_>) -> Result<()> {
        if self.end().is_some() || self.now() - self.saved_at < seconds {
            return Ok(());
        }
        self.saved_at = self.now();
        match self.session.interrupt().await {
            Ok(records) => self.tell(&records, sink),
            Err(error @ Error::File(_)) => sink(Event::Failed {
                what: "save".into(),
                message: format!("{error}; the training goes on"),
                field: None,
            }),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The last record of a run that is complete.
    pub(super) fn finish(&mut self, sink: Sink<'_>) -> Result<()> {
        if !self.finished {
            self.finished = true;
            let record = self.session.finish()?;
            self.tell(&[record], sink);
        }
        Ok(())
    }

    /// Save, before it is put away.
    pub(super) async fn close(&mut self, sink: Sink<'_>) -> Result<()> {
        if self.folder.is_some() && self.session.diverged().is_none() {
            let records = self.session.interrupt().await?;
            self.tell(&records, sink);
        }
        Ok(())
    }

    /// Change a field that is safe while running.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<()> {
        self.session.set(key, value)?;
        self.finished = self.finished && self.session.is_over();
        Ok(())
    }

    /// The configuration now.
    pub(super) fn configured(&self) -> Event {
        let config = self.session.config();
        Event::Configured {
            values: values(&config.to_toml()),
            toml: config.to_toml(),
            steps: config.train.steps,
        }
    }

    /// Back to the last checkpoint, with another learning rate.
    pub(super) async fn rewind(&mut self, lr_factor: f64, sink: Sink<'_>) -> Result<()> {
        if let Some(folder) = &self.folder {
            RunDir::bring(folder).await?;
        }
        let run = self.folder.as_deref().map(RunDir::open).transpose()?;
        let notices = match &run {
            Some(run) => {
                let checkpoint = run.need_checkpoint(Which::Last)?;
                self.session.restore(&read_checkpoint(&checkpoint)?)?
            }
            None => self.session.rewind_kept()?,
        };
        for message in notices {
            sink(Event::Notice { message });
        }
        let lr = self.session.config().train.lr * lr_factor;
        if lr_factor != 1.0 {
            self.session.set("train.lr", &format!("{lr:e}"))?;
        }
        sink(Event::Notice {
            message: format!("back at step {}, learning rate {lr:.3e}", self.step()),
        });
        match run {
            Some(run) => {
                self.lines = Line::read(&run.metrics()?);
                self.samples = sample_log::read(run.path()).unwrap_or_default();
            }
            None => self.again = true,
        }
        sink(Event::Ready(Box::new(self.info())));
        Ok(())
    }

    /// A sampler with the parameters of this moment, and the tokens of the prompt.
    pub(super) async fn sampler(
        &mut self,
        prompt: &str,
        sampling: Sampling,
    ) -> Result<(Sampler, Tokenizer, Vec<u32>)> {
        let values = self.session.values().await?;
        let trainer = self.session.trainer();
        let (data, context) = (trainer.data(), self.session.config().model.context);
        let tokenizer = data.tokenizer().clone();
        let ids = if prompt.is_empty() {
            data.prompt(context as usize)
        } else {
            tokenizer.encode(prompt).ids
        };
        let sampler = Sampler::new(
            self.device.executor(),
            trainer.model(),
            context,
            &values,
            sampling,
            ids.clone(),
        )?;
        Ok((sampler, tokenizer, ids))
    }

    /// Depth weights token by token on a text.
    pub(super) async fn trace(&mut self, text: &str) -> Result<Trace> {
        self.session.trace(text).await
    }

    /// Held-out loss with and without edits.
    pub(super) async fn intervene(&mut self, edits: Vec<Intervention>) -> Result<Effect> {
        self.session.intervene(edits, EFFECT_BATCHES).await
    }
}
