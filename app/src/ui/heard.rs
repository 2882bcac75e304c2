//! All that the window knows: the sum of the events it has heard.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) use super::curve::{Curve, Point};
use crate::protocol::{
    Checked, DeviceInfo, Effect, Event, Frame, KeptRun, Line, Peek, RunInfo, RunState, Sampled,
    Timing, Trace,
};

/// Frames that are kept; when there are more, every second one is dropped.
const MOST_FRAMES: usize = 2048;

/// Samples that are kept.
const MOST_SAMPLES: usize = 64;

/// Recorded frames of the run, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    list: Vec<Frame>,
    /// Every how manieth frame is recorded, after thinning.
    stride: u64,
    seen: u64,
    generation: u64,
}

/// Source of [`Frames::generation`].
static GENERATIONS: AtomicU64 = AtomicU64::new(1);

impl Frames {
    fn push(&mut self, frame: Frame) {
        self.generation = GENERATIONS.fetch_add(1, Ordering::Relaxed);
        // A rewind or a resumed run: what comes later has been taken back.
        self.list.retain(|old| old.step < frame.step);
        self.stride = self.stride.max(1);
        self.seen += 1;
        // The newest is always there; it is replaced while it is not due for keeping.
        if !(self.seen - 1).is_multiple_of(self.stride) && self.list.len() > 1 {
            self.list.pop();
        }
        self.list.push(frame);
        if self.list.len() > MOST_FRAMES {
            let mut index = 0;
            self.list.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.stride *= 2;
        }
    }

    /// Recorded frames; at steps that have none, the routing records that are here already stay.
    fn merge(&mut self, recorded: Vec<Frame>) {
        let records = std::mem::take(self).list;
        let mut all = recorded;
        let known: HashSet<u64> = all.iter().map(|frame| frame.step).collect();
        all.extend(
            records
                .into_iter()
                .filter(|frame| !known.contains(&frame.step)),
        );
        all.sort_by_key(|frame| frame.step);
        all.into_iter().for_each(|frame| self.push(frame));
    }

    /// Forget what comes after this step: it is done again.
    fn rewind(&mut self, step: u64) {
        self.list.retain(|frame| frame.step <= step);
        self.generation = GENERATIONS.fetch_add(1, Ordering::Relaxed);
    }

    /// A number that changes whenever the list does.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// All of them.
    #[must_use]
    pub fn list(&self) -> &[Frame] {
        &self.list
    }

    /// The newest.
    #[must_use]
    pub fn last(&self) -> Option<&Frame> {
        self.list.last()
    }
}

/// The curves of one run.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Training loss; nats.
    pub loss: Curve,
    /// Validation loss; nats.
    pub val_loss: Curve,
    /// Share of right answers.
    pub accuracy: Curve,
    /// Learning rate.
    pub lr: Curve,
    /// Norm of the gradient before clipping.
    pub grad_norm: Curve,
    /// Fields that were changed while the run went on: after which update, and what, in words.
    pub changes: Vec<(u64, String)>,
    /// Tokens per second.
    pub speed: Curve,
    /// Routing records.
    pub frames: Frames,
    /// Tokens and seconds of the last update.
    at: (f64, f64),
    /// Seconds of the processes before this one.
    earlier: f64,
}

impl Series {
    /// The curves of these records, and these frames.
    #[must_use]
    pub fn of(lines: &[Line], frames: Vec<Frame>) -> Self {
        let mut series = Self::default();
        lines.iter().for_each(|line| series.add(line));
        series.frames.merge(frames);
        series
    }

    /// Forget what comes after this step.
    fn end_at(&mut self, step: u64) {
        let next = step as f64 + 1.0;
        self.rewind(next);
        self.changes.retain(|(at, _)| *at <= step);
        for curve in [&mut self.val_loss, &mut self.accuracy] {
            curve.truncate(curve.partition_point(|point| point.step < next));
        }
    }

    /// Forget what comes at or after this step: it is done again.
    fn rewind(&mut self, step: f64) {
        for curve in [
            &mut self.loss,
            &mut self.lr,
            &mut self.grad_norm,
            &mut self.speed,
        ] {
            curve.truncate(curve.partition_point(|point| point.step < step));
        }
    }

    /// Tokens and seconds of training so far. The clock of a process begins at zero: a resumed run goes on where the one
    /// before it ended, and no time passes in a rewind.
    fn clock(&mut self, tokens: u64, seconds: Option<f64>) -> (f64, f64) {
        let last = self.loss.last().copied();
        let before = last.map_or(0.0, |point| point.seconds);
        let mut now = seconds.map_or(before, |seconds| seconds + self.earlier);
        if now < before {
            self.earlier = before;
            now = seconds.map_or(before, |seconds| seconds + before);
        }
        let tokens = (tokens as f64).max(last.map_or(0.0, |point| point.tokens));
        self.at = (tokens, now);
        self.at
    }

    fn add(&mut self, line: &Line) {
        match line {
            Line::Train {
                step,
                loss,
                lr,
                grad_norm,
                tokens,
                tokens_per_s,
                seconds,
            } => {
                let step = *step as f64;
                if self.loss.last().is_some_and(|last| last.step >= step) {
                    self.rewind(step);
                }
                let (tokens, seconds) = self.clock(*tokens, *seconds);
                let point = |value: Option<f64>| Point {
                    step,
                    tokens,
                    seconds,
                    value: value.unwrap_or(f64::NAN),
                };
                self.loss.push(point(*loss));
                self.lr.push(point(*lr));
                self.grad_norm.push(point(*grad_norm));
                self.speed.push(point(*tokens_per_s));
            }
            Line::Eval {
                step,
                val_loss,
                accuracy,
            } => {
                let step = *step as f64;
                let (tokens, seconds) = self.at;
                for (curve, value) in [
                    (&mut self.val_loss, *val_loss),
                    (&mut self.accuracy, *accuracy),
                ] {
                    curve.truncate(curve.partition_point(|point| point.step < step));
                    if let Some(value) = value {
                        curve.push(Point {
                            step,
                            tokens,
                            seconds,
                            value,
                        });
                    }
                }
            }
            Line::Changed { step, key, value } => {
                self.changes.retain(|(at, _)| at <= step);
                self.changes.push((*step, format!("{key} = {value}")));
            }
            Line::Routing { step, sites } => self.frames.push(Frame {
                step: *step,
                sites: sites.clone(),
                ..Frame::default()
            }),
            _ => {}
        }
    }
}

/// A finished run from disk, to compare with.
#[derive(Clone, Debug)]
pub struct OtherRun {
    /// Its folder.
    pub folder: String,
    /// Effective configuration.
    pub toml: String,
    /// Its curves.
    pub series: Series,
}

/// How loud a line of the log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// It happened.
    Note,
    /// It went wrong.
    Error,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Updates done when it was written.
    pub step: u64,
    /// How loud.
    pub level: Level,
    /// A sentence.
    pub text: String,
    /// The field at fault, if it is one.
    pub field: Option<String>,
}

/// Stop conditions that are in force; all `None`: it runs to the end of the schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Goal {
    /// Updates in all.
    pub step: Option<u64>,
    /// Validation loss, at most.
    pub val_loss: Option<f64>,
    /// Seconds after it was set.
    pub seconds: Option<f64>,
}

/// Everything.
#[derive(Debug, Default)]
pub struct Heard {
    /// Devices, best first.
    pub devices: Vec<DeviceInfo>,
    /// What `auto` takes, and why.
    pub auto: String,
    /// The last answer about the draft.
    pub checked: Option<Checked>,
    /// The run that is loaded.
    pub run: Option<RunInfo>,
    /// The run that was loaded before, while none is; the curves are still its own.
    pub closed: Option<RunInfo>,
    /// The closed run is one on disk that is looked at, perhaps while another program trains it.
    pub looking: bool,
    /// What it does.
    pub state: Option<RunState>,
    /// Updates done.
    pub step: u64,
    /// Updates that were done when it became ready.
    pub opened: u64,
    /// When it pauses by itself.
    pub goal: Goal,
    /// Its curves and frames.
    pub series: Series,
    /// Frames come: routing records of validations, which have no norms and no matrix, are not needed.
    live: bool,
    /// Speed.
    pub timing: Timing,
    /// Texts, newest last.
    pub samples: Vec<Sampled>,
    /// Answers to `Sample` so far, failures included.
    pub answers_to_sample: u64,
    /// Weights token by token.
    pub trace: Option<Trace>,
    /// What the interventions do.
    pub effect: Option<Effect>,
    /// A folder that was looked into.
    pub peek: Option<Peek>,
    /// Runs in the folder of runs, as they were listed last.
    pub runs: Vec<KeptRun>,
    /// Why nothing is there after this start, if so.
    pub not_kept: Option<String>,
    /// Other runs.
    pub others: Vec<OtherRun>,
    /// Last checkpoint, and where it is if it was written in this session.
    pub saved: Option<(u64, Option<String>)>,
    /// The log, newest last.
    pub log: Vec<Entry>,
    /// The thread has ended.
    pub ended: bool,
}

impl Heard {
    /// What the run does.
    #[must_use]
    pub fn state(&self) -> &RunState {
        self.state.as_ref().unwrap_or(&RunState::Empty)
    }

    /// The run that is loaded, or the one that is looked at.
    #[must_use]
    pub fn subject(&self) -> Option<&RunInfo> {
        let looked = self.closed.as_ref().filter(|_| self.looking);
        self.run.as_ref().or(looked)
    }

    /// Recorded frames.
    #[must_use]
    pub fn frames(&self) -> &[Frame] {
        self.series.frames.list()
    }

    /// Whether closing now would lose something that was learnt since the run was opened. What diverged is worth nothing.
    #[must_use]
    pub fn is_unsaved(&self) -> bool {
        let saved = self.saved.as_ref().map(|(step, _)| *step) == Some(self.step);
        let goes_on = *self.state() == RunState::Running;
        let diverged = matches!(self.state(), RunState::Diverged { .. });
        let trained = self.step != self.opened;
        self.run.is_some() && !diverged && trained && (goes_on || !saved)
    }

    /// Whether a run is the one that is loaded, or was last: read again after a rewind or a lost device, or opened again.
    #[must_use]
    pub fn is_same_run(&self, next: &RunInfo) -> bool {
        let own = self.run.as_ref().or(self.closed.as_ref());
        own.is_some_and(|own| own.folder == next.folder && (next.again || !own.folder.is_empty()))
    }

    fn note(&mut self, level: Level, text: String, field: Option<String>) {
        self.log.push(Entry {
            step: self.step,
            level,
            text,
            field,
        });
    }

    /// Keep the run that was loaded before the one in `next`, to compare with.
    fn retire(&mut self, next: &str) {
        let before = self.run.take().or(self.closed.take());
        if let Some(run) = before.filter(|run| run.folder != next && !self.series.loss.is_empty()) {
            self.forget(&run.folder);
            self.others.push(OtherRun {
                folder: run.folder,
                toml: run.toml,
                series: std::mem::take(&mut self.series),
            });
        }
    }

    /// Compare no longer with the run of this folder.
    pub fn forget(&mut self, folder: &str) {
        self.others.retain(|other| other.folder != folder);
    }

    /// Add one event.
    pub fn hear(&mut self, event: Event) {
        match event {
            Event::Devices { list, auto } => (self.devices, self.auto) = (list, auto),
            Event::Checked(checked) => {
                let newer = self
                    .checked
                    .as_ref()
                    .is_none_or(|old| old.number <= checked.number);
                if newer {
                    self.checked = Some(*checked);
                }
            }
            Event::Ready(mut run) => {
                let mut frames = Frames::default();
                let same = self.is_same_run(&run);
                if same {
                    frames = std::mem::take(&mut self.series.frames);
                    frames.rewind(run.step);
                }
                let samples = std::mem::take(&mut run.samples);
                if samples.is_empty() && same {
                    self.samples.retain(|sample| sample.step <= run.step);
                } else {
                    self.samples = samples;
                }
                self.looking = false;
                if run.again && self.is_same_run(&run) {
                    self.series.end_at(run.step);
                } else {
                    self.retire(&run.folder);
                    let recorded = std::mem::take(&mut run.frames);
                    self.series = Series::of(&run.lines, recorded);
                }
                if !frames.list.is_empty() {
                    self.series.frames = frames;
                }
                (self.step, self.opened) = (run.step, run.step);
                (self.trace, self.effect) = (None, None);
                self.live = false;
                self.saved = run.saved.map(|step| (step, None));
                self.run = Some(*run);
            }
            Event::Configured {
                values,
                toml,
                steps,
            } => {
                if let Some(run) = &mut self.run {
                    (run.values, run.toml, run.steps) = (values, toml, steps);
                }
            }
            Event::Goal {
                step,
                val_loss,
                seconds,
            } => {
                self.goal = Goal {
                    step,
                    val_loss,
                    seconds,
                };
            }
            Event::State(state) => {
                if let RunState::Diverged { message, .. } = &state {
                    self.note(Level::Error, message.clone(), None);
                }
                if state == RunState::Empty {
                    self.closed = self.run.take().or(self.closed.take());
                }
                self.state = Some(state);
            }
            Event::Lines(lines) => {
                for line in &lines {
                    if let Line::Train { step, .. } = line {
                        self.step = *step;
                    }
                    if !(self.live && matches!(line, Line::Routing { .. })) {
                        self.series.add(line);
                    }
                }
            }
            Event::Looked(mut run) => {
                let again = self.looking && self.is_same_run(&run);
                if !again {
                    self.retire(&run.folder);
                    (self.trace, self.effect, self.saved) = (None, None, None);
                }
                let recorded = std::mem::take(&mut run.frames);
                self.series = Series::of(&run.lines, recorded);
                self.samples = std::mem::take(&mut run.samples);
                (self.step, self.opened) = (run.step, run.step);
                (self.run, self.looking, self.live) = (None, true, false);
                self.timing = Timing::default();
                self.closed = Some(*run);
            }
            Event::Frame(frame) => {
                self.live = true;
                // Records come in batches; a frame is newer than they are.
                self.step = self.step.max(frame.step);
                self.series.frames.push(*frame);
            }
            Event::Timing(timing) => self.timing = timing,
            Event::Peeked(peek) => self.peek = Some(*peek),
            Event::Runs(runs) => self.runs = runs,
            Event::Keeping { trouble } => {
                if let Some(trouble) = &trouble {
                    self.note(Level::Error, trouble.clone(), None);
                }
                self.not_kept = trouble;
            }
            Event::Imported { folder } => {
                self.note(Level::Note, format!("kept in {folder}"), None);
            }
            // The window hands it out.
            Event::Exported(_) => {}
            Event::History {
                folder,
                toml,
                lines,
                frames,
            } => {
                self.others.retain(|other| other.folder != folder);
                let series = Series::of(&lines, frames);
                self.others.push(OtherRun {
                    folder,
                    toml,
                    series,
                });
            }
            Event::Sampled(sample) => {
                self.answers_to_sample += 1;
                if self.samples.len() >= MOST_SAMPLES {
                    self.samples.remove(0);
                }
                self.samples.push(*sample);
            }
            Event::Traced(trace) => self.trace = Some(*trace),
            Event::Effect(effect) => self.effect = Some(*effect),
            Event::Saved { step, path } => {
                self.note(Level::Note, format!("saved: {path}"), None);
                self.saved = Some((step, Some(path)));
            }
            Event::DeviceLost { message, .. } => self.note(Level::Error, message, None),
            Event::Notice { message } | Event::NoGpu { message } => {
                self.note(Level::Note, message, None);
            }
            Event::Failed {
                what,
                message,
                field,
            } => {
                self.answers_to_sample += u64::from(what == "sample");
                // The folder is gone, perhaps: what was read stays.
                self.looking &= what != "look at";
                self.note(Level::Error, format!("{what}: {message}"), field);
            }
            Event::Ended => self.ended = true,
        }
    }
}
