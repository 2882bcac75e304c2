//! The engine's side of a front end: takes [`Command`]s, trains in between, gives [`Event`]s.
//!
//! It has no thread and no clock of its own. On a desktop [`crate::desk`] runs it on a thread; in a browser a worker calls
//! it. What it shows never changes what is trained: frames, samples and interventions read parameters and write nothing
//! that a step uses.

mod check;
mod export;
mod folders;
mod goal;
mod import;
mod loaded;
mod pace;
mod writing;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use braid_engine::device::{AdapterKind, Device, DeviceChoice, DeviceOptions, Survey};
use braid_engine::{Error, Result};

use crate::config::RunConfig;
use crate::files;
use crate::protocol::{AUTOSAVE, Command, DeviceInfo, Draft, Event, RunState, SHARE};
use crate::run_dir::RunDir;
use crate::run_name::RUNS;
use check::Checker;
use goal::Goal;
use loaded::{Loaded, Lost, Prepared};
use writing::{Order, Writing};

/// What the backend cannot know by itself.
#[derive(Clone)]
pub struct Surroundings {
    /// Seconds since some moment.
    pub clock: Rc<dyn Fn() -> f64>,
    /// Seconds since 1970, for the names of runs.
    pub calendar: fn() -> u64,
    /// Bytes that this process may still use, if known.
    pub free_memory: fn() -> Option<u64>,
    /// Bytes that this process uses, if known.
    pub used_memory: fn() -> Option<u64>,
    /// Whether there is a file system to keep runs in.
    pub files: bool,
}

impl std::fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings").finish_non_exhaustive()
    }
}

/// A device that is lost more often without a new checkpoint in between is given up.
const MOST_REOPENED: u32 = 2;

/// The device that is always there.
const CPU: &str = "cpu";

/// Where events go.
pub type Sink<'a> = &'a mut dyn FnMut(Event);

/// A training that answers to commands.
#[derive(Debug)]
pub struct Backend {
    surroundings: Surroundings,
    /// Devices that were opened, by what they were asked for.
    devices: Vec<(String, Device)>,
    checker: Checker,
    loaded: Option<Loaded>,
    running: bool,
    /// One update, then pause.
    single: bool,
    goal: Goal,
    /// Share of the training time that goes into routing frames.
    share: f64,
    /// Seconds between two checkpoints by time.
    autosave: Option<f64>,
    /// Texts that are being written, the oldest first.
    writing: VecDeque<Writing>,
    /// What to write whenever so many updates are done.
    every: Option<(u64, Order)>,
    /// The checkpoint that lost devices led back to last, and how often in a row.
    reopened: (u64, u32),
    /// The last text that a run keeps: its name in configurations, and the run's folder.
    text: Option<(String, PathBuf)>,
    ended: bool,
}

impl Backend {
    /// Nothing loaded yet.
    #[must_use]
    pub fn new(surroundings: Surroundings) -> Self {
        Self {
            surroundings,
            devices: Vec::new(),
            checker: Checker::default(),
            loaded: None,
            running: false,
            single: false,
            goal: Goal::default(),
            share: SHARE,
            autosave: Some(AUTOSAVE),
            writing: VecDeque::new(),
            every: None,
            reopened: (0, 0),
            text: None,
            ended: false,
        }
    }

    /// Whether [`Backend::turn`] has something to do; if not, wait for a command.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.running || !self.writing.is_empty()
    }

    /// Whether the last command was `Quit`.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Do what was asked. What goes wrong is an event, followed by the state that is true then.
    pub async fn handle(&mut self, command: Command, sink: Sink<'_>) {
        let what = name(&command);
        let was_running = self.running;
        let Err(error) = self.obey(command, sink).await else {
            return;
        };
        if is_lost(&error) {
            if self.loaded.is_some() {
                return self.fail(&error, was_running, sink).await;
            }
            // The next wish opens it again.
            self.devices.clear();
        }
        let field = match &error {
            Error::Config { field, .. } => Some(field.clone()),
            _ => None,
        };
        sink(Event::Failed {
            what: what.into(),
            message: error.to_string(),
            field,
        });
        sink(Event::State(self.state()));
    }

    /// What goes on.
    fn state(&self) -> RunState {
        let Some(loaded) = &self.loaded else {
            return RunState::Empty;
        };
        loaded.end().unwrap_or(if self.running {
            RunState::Running
        } else {
            RunState::Paused
        })
    }

    async fn obey(&mut self, command: Command, sink: Sink<'_>) -> Result<()> {
        match command {
            Command::Devices => {
                let survey = Device::survey().await;
                sink(devices(&survey));
            }
            Command::Check {
                number,
                draft,
                device,
            } => {
                let draft = self.with_text(draft).await;
                let device = self.device(&device).await;
                let checked = self.checker.check(number, &draft, device.as_ref());
                sink(Event::Checked(Box::new(checked)));
            }
            Command::Start {
                draft,
                device,
                folder,
                paused,
            } => {
                self.start(draft, &device, (folder, None), paused, sink)
                    .await?;
            }
            Command::Open { folder, device } => {
                folders::peek(&folder).await?;
                let device = self.device(&device).await?;
                self.close(true, sink).await?;
                self.preparing("reading the checkpoint", sink);
                let loaded =
                    Loaded::open(&PathBuf::from(folder), &device, &self.surroundings, sink).await?;
                self.goal = Goal::default();
                sink(self.goal.event());
                self.begin(loaded, false, sink);
            }
            Command::Pause => self.pause(sink).await?,
            Command::Resume => self.resume(false, sink)?,
            Command::Step => self.resume(true, sink)?,
            Command::Stop => {
                self.close(true, sink).await?;
                sink(Event::State(RunState::Empty));
            }
            Command::Set { key, value } => {
                let loaded = self.need()?;
                let was_over = loaded.end().is_some();
                loaded.set(&key, &value)?;
                sink(loaded.configured());
                if was_over {
                    // More steps than before: it can go on.
                    sink(Event::State(self.state()));
                }
            }
            Command::Until {
                step,
                val_loss,
                seconds,
            } => {
                let now = (self.surroundings.clock)();
                self.goal = Goal {
                    step,
                    val_loss,
                    seconds,
                    until: seconds.map(|seconds| now + seconds),
                };
                sink(self.goal.event());
            }
            Command::Save => {
                self.need()?.save(sink).await?;
            }
            Command::Look { folder } => {
                // What can be refused is, before the run that is loaded is put away.
                RunDir::open(Path::new(&folder))?;
                if self.loaded.is_some() {
                    self.close(true, sink).await?;
                    sink(Event::State(RunState::Empty));
                }
                folders::look(&folder, sink).await?;
            }
            Command::Peek { folder } => {
                sink(Event::Peeked(Box::new(folders::peek(&folder).await?)));
            }
            Command::History { folder } => folders::history(&folder, sink).await?,
            Command::Runs => sink(Event::Runs(folders::list().await)),
            Command::Import {
                files,
                draft,
                device,
            } => match import::look(files)? {
                import::Found::Run { name, files } => {
                    let now = (self.surroundings.calendar)();
                    let folder = import::keep(Path::new(RUNS), name.as_deref(), now, &files)?;
                    let folder = folder.display().to_string();
                    sink(Event::Imported { folder });
                    sink(Event::Runs(folders::list().await));
                }
                import::Found::Weights(weights) => {
                    let new = (None, Some(weights));
                    self.start(draft, &device, new, true, sink).await?;
                }
            },
            Command::Export { folder, piece } => {
                let exported = export::export(Path::new(&folder), piece).await?;
                sink(Event::Exported(Box::new(exported)));
            }
            Command::Delete { folder } => {
                let loaded = self.loaded.as_ref().and_then(Loaded::folder);
                folders::delete(&folder, loaded.as_deref())?;
                sink(Event::Runs(folders::list().await));
            }
            Command::Sample {
                prompt,
                tokens,
                temperature,
                seed,
            } => {
                let loaded = self.loaded.as_mut().ok_or_else(no_run)?;
                let order = Order::new(prompt, tokens, temperature, seed);
                self.writing.push_back(Writing::new(loaded, &order).await?);
            }
            Command::SampleEvery {
                every,
                prompt,
                tokens,
                temperature,
                seed,
            } => {
                let order = Order::new(prompt, tokens, temperature, seed);
                self.every = every.filter(|every| *every > 0).map(|every| (every, order));
            }
            Command::Trace { text } => {
                let trace = self.need()?.trace(&text).await?;
                sink(Event::Traced(Box::new(trace)));
            }
            Command::Intervene { edits } => {
                let effect = self.need()?.intervene(edits).await?;
                sink(Event::Effect(Box::new(effect)));
            }
            Command::Rewind { lr_factor } => {
                let loaded = self.loaded.as_mut().ok_or_else(no_run)?;
                loaded.rewind(lr_factor, sink).await?;
                self.running = false;
                sink(Event::State(RunState::Paused));
            }
            Command::Watch { share } => self.share = share.clamp(0.0, 1.0),
            Command::Autosave { seconds } => {
                self.autosave = seconds.filter(|seconds| *seconds > 0.0)
            }
            Command::Quit { save } => {
                self.close(save, sink).await?;
                self.ended = true;
                sink(Event::Ended);
            }
        }
        Ok(())
    }

    /// A slice of what is going on: one update and what is due after it, and some tokens of a sample.
    pub async fn turn(&mut self, sink: Sink<'_>) {
        self.write_on(sink).await;
        if self.running
            && let Err(error) = self.advance(sink).await
        {
            self.fail(&error, true, sink).await;
        }
    }

    async fn write_on(&mut self, sink: Sink<'_>) {
        let (Some(writing), Some(loaded)) = (self.writing.front_mut(), &mut self.loaded) else {
            return;
        };
        match writing.go_on().await {
            Ok(None) => {}
            Ok(Some(sampled)) => {
                loaded.sampled(sampled, sink);
                self.writing.pop_front();
            }
            Err(error) => {
                self.writing.pop_front();
                sink(Event::Failed {
                    what: "sample".into(),
                    message: error.to_string(),
                    field: None,
                });
            }
        }
    }

    async fn advance(&mut self, sink: Sink<'_>) -> Result<()> {
        let share = self.share;
        let Some(loaded) = &mut self.loaded else {
            self.running = false;
            return Ok(());
        };
        loaded.advance(share, sink).await?;
        if let Some((every, order)) = &self.every
            && loaded.step().is_multiple_of(*every)
            && loaded.end().is_none_or(|end| end == RunState::Finished)
        {
            // A text takes longer than the updates between two: one waits, the others are left out.
            if self.writing.len() < 2 {
                self.writing.push_back(Writing::new(loaded, order).await?);
            }
        }
        if let Some(seconds) = self.autosave {
            loaded.autosave(seconds, sink).await?;
        }
        if let Some(state) = loaded.end() {
            self.running = false;
            if state == RunState::Finished {
                loaded.finish(sink)?;
            }
            loaded.frame(true, sink).await?;
            sink(Event::State(state));
            return Ok(());
        }
        let now = (self.surroundings.clock)();
        let reached = self.goal.reached(loaded, now);
        if self.single || reached.is_some() {
            if let Some(message) = reached {
                self.goal = Goal::default();
                sink(self.goal.event());
                sink(Event::Notice { message });
            }
            self.pause(sink).await?;
        }
        Ok(())
    }

    /// A failure while training, or that shows that the device is gone. A lost device is opened again, and the run goes on
    /// from its last checkpoint. If that fails, or leads back to the same checkpoint again and again, the run waits there on
    /// the CPU.
    async fn fail(&mut self, error: &Error, run: bool, sink: Sink<'_>) {
        self.running = false;
        if !is_lost(error) {
            sink(Event::Failed {
                what: "train".into(),
                message: error.to_string(),
                field: None,
            });
            sink(Event::State(self.state()));
            return;
        }
        self.devices.clear();
        self.writing.clear();
        let Some(lost) = self.loaded.take() else {
            return;
        };
        let (choice, good) = (lost.choice(), lost.good());
        let mut lost = lost.into_lost();
        let times = match self.reopened {
            (step, times) if step == good => times + 1,
            _ => 1,
        };
        self.reopened = (good, times);
        let reopened = if times > MOST_REOPENED {
            Err(Error::Device(format!(
                "it was lost {times} times since that checkpoint; a smaller model may help"
            )))
        } else {
            self.reopen(&choice, &mut lost, sink).await
        };
        let (loaded, run, message) = match reopened {
            Ok(loaded) => {
                let step = loaded.step();
                let message = format!(
                    "{error}. It was opened again, and the run goes on from its checkpoint of step {step}"
                );
                (loaded, run, message)
            }
            Err(second) => match self.reopen(CPU, &mut lost, sink).await {
                Ok(loaded) => {
                    let step = loaded.step();
                    let message = format!(
                        "{error}, and cannot be used any more: {second}. The run waits on the CPU at its checkpoint of \
                         step {step}: go on there, or start another run on another device"
                    );
                    (loaded, false, message)
                }
                Err(third) => {
                    sink(Event::Failed {
                        what: "train".into(),
                        message: format!(
                            "{error}; going on failed too: {second}; on the CPU: {third}"
                        ),
                        field: None,
                    });
                    sink(Event::State(RunState::Empty));
                    return;
                }
            },
        };
        let step = loaded.step();
        self.begin(loaded, run, sink);
        sink(Event::DeviceLost { step, message });
    }

    async fn reopen(&mut self, choice: &str, lost: &mut Lost, sink: Sink<'_>) -> Result<Loaded> {
        let device = self.device(choice).await?;
        let loaded = Loaded::again(lost, &device, &self.surroundings, sink).await;
        if loaded.as_ref().is_err_and(is_lost) {
            self.devices.clear();
        }
        loaded
    }

    fn need(&mut self) -> Result<&mut Loaded> {
        self.loaded.as_mut().ok_or_else(no_run)
    }

    fn preparing(&self, stage: &str, sink: Sink<'_>) {
        sink(Event::State(RunState::Preparing {
            stage: stage.into(),
            done: 0,
            of: 0,
        }));
    }

    fn begin(&mut self, mut loaded: Loaded, run: bool, sink: Sink<'_>) {
        sink(Event::Ready(Box::new(loaded.info())));
        let state = match loaded.end() {
            Some(state) => state,
            None if run => RunState::Running,
            None => RunState::Paused,
        };
        self.running = state == RunState::Running;
        if let (Some(name), Some(folder)) = (loaded.text_name(), loaded.folder()) {
            self.text = Some((name.to_owned(), folder));
        }
        self.loaded = Some(loaded);
        self.writing.clear();
        sink(Event::State(state));
    }

    fn resume(&mut self, single: bool, sink: Sink<'_>) -> Result<()> {
        let loaded = self.need()?;
        if let Some(state) = loaded.end() {
            sink(Event::State(state));
            return Ok(());
        }
        loaded.restart_clock();
        (self.running, self.single) = (true, single);
        if !single {
            sink(Event::State(RunState::Running));
        }
        Ok(())
    }

    async fn pause(&mut self, sink: Sink<'_>) -> Result<()> {
        (self.running, self.single) = (false, false);
        let loaded = self.need()?;
        loaded.settle(sink).await?;
        let state = loaded.end().unwrap_or(RunState::Paused);
        loaded.frame(true, sink).await?;
        sink(Event::State(state));
        Ok(())
    }

    /// Put the run away.
    async fn close(&mut self, save: bool, sink: Sink<'_>) -> Result<()> {
        (self.running, self.single) = (false, false);
        self.writing.clear();
        let Some(mut loaded) = self.loaded.take() else {
            return Ok(());
        };
        if save && let Err(error) = loaded.close(sink).await {
            // What is not saved is not thrown away.
            self.loaded = Some(loaded);
            return Err(error);
        }
        Ok(())
    }

    fn folder(&self, draft: &Draft, folder: Option<String>) -> Result<Option<PathBuf>> {
        if !self.surroundings.files {
            return Ok(None);
        }
        let config = RunConfig::parse(&draft.toml, &[])?;
        let folder = folder.map(PathBuf::from).unwrap_or_else(|| {
            crate::run_name::default_folder(&config, (self.surroundings.calendar)())
        });
        crate::run_dir::refuse_occupied(&folder)?;
        Ok(Some(folder))
    }

    /// Begin a run: in a folder, or in one of its own; with parameters, or with those that its seed gives.
    async fn start(
        &mut self,
        draft: Draft,
        device: &str,
        (folder, weights): (Option<String>, Option<Vec<u8>>),
        paused: bool,
        sink: Sink<'_>,
    ) -> Result<()> {
        let draft = self.with_text(draft).await;
        // All that can be refused is, before the run that is loaded is put away.
        let folder = self.folder(&draft, folder)?;
        let device = self.device(device).await?;
        let mut prepared = Prepared::of(&draft, sink)?;
        if let Some(weights) = weights {
            prepared = prepared.with_weights(weights)?;
        }
        self.close(true, sink).await?;
        self.preparing("recording the plan", sink);
        let loaded = Loaded::begin(prepared, &device, folder, &self.surroundings, sink).await?;
        self.begin(loaded, !paused, sink);
        Ok(())
    }

    /// A draft that names the text of a run that was loaded before, which is no file of this machine, gets that text.
    async fn with_text(&self, mut draft: Draft) -> Draft {
        let config = RunConfig::parse(&draft.toml, &[]);
        let named = config.ok().and_then(|config| config.data.file);
        let (Some(name), Some((known, folder)), None) = (named, &self.text, &draft.text) else {
            return draft;
        };
        if name != *known || files::exists(Path::new(&name)) {
            return draft;
        }
        // If it has gone since, the draft is refused for want of its text.
        if let Ok(Some(text)) = RunDir::bring_text(folder).await {
            draft.text = Some((name, text));
        }
        draft
    }

    /// The device of a choice; opened once.
    async fn device(&mut self, choice: &str) -> Result<Device> {
        if let Some((_, device)) = self.devices.iter().find(|(known, _)| known == choice) {
            return Ok(device.clone());
        }
        let parsed: DeviceChoice = choice.parse()?;
        let options = DeviceOptions::default();
        let mut device = Device::open(&parsed, &options).await?;
        // Devices that use the machine's memory are limited to what is free.
        if device.report().kind == AdapterKind::Host {
            device = Device::cpu(&DeviceOptions {
                memory: (self.surroundings.free_memory)(),
                ..options
            });
        }
        self.devices.push((choice.into(), device.clone()));
        Ok(device)
    }
}

fn is_lost(error: &Error) -> bool {
    matches!(error, Error::DeviceLost(_) | Error::Gpu { .. })
}

fn no_run() -> Error {
    Error::File("no run is loaded; start one, or open one".into())
}

fn devices(survey: &Survey) -> Event {
    let info = |report: &braid_engine::device::AdapterReport| DeviceInfo {
        choice: report.choice(),
        name: report.to_string(),
        kind: match serde_json::to_value(report.kind) {
            Ok(serde_json::Value::String(kind)) => kind,
            _ => String::new(),
        },
        binding_bytes: report.limits.map(|limits| limits.binding_bytes),
    };
    let auto = if survey.why.is_empty() {
        survey.auto.to_string()
    } else {
        format!("{} ({})", survey.auto, survey.why)
    };
    Event::Devices {
        list: survey.devices.iter().map(info).collect(),
        auto,
    }
}

/// What a person calls a command.
fn name(command: &Command) -> &'static str {
    match command {
        Command::Devices => "list devices",
        Command::Check { .. } => "check",
        Command::Start { .. } => "start",
        Command::Pause => "pause",
        Command::Resume => "resume",
        Command::Step => "step",
        Command::Stop => "stop",
        Command::Set { .. } => "set",
        Command::Until { .. } => "stop conditions",
        Command::Save => "save",
        Command::Look { .. } => "look at",
        Command::Peek { .. } => "look inside",
        Command::Open { .. } => "open",
        Command::History { .. } => "history",
        Command::Runs => "list runs",
        Command::Import { .. } => "import",
        Command::Export { .. } => "export",
        Command::Delete { .. } => "delete",
        Command::Sample { .. } | Command::SampleEvery { .. } => "sample",
        Command::Trace { .. } => "trace",
        Command::Intervene { .. } => "intervene",
        Command::Rewind { .. } => "rewind",
        Command::Watch { .. } => "watch",
        Command::Autosave { .. } => "autosave",
        Command::Quit { .. } => "quit",
    }
}
