//! All that the window knows: the sum of the events it has heard.

use crate::protocol::{
    Checked, DeviceInfo, Effect, Event, Frame, Line, Peek, RunInfo, RunState, Sampled, Timing,
    Trace,
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
}

impl Frames {
    fn push(&mut self, frame: Frame) {
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

/// One point of the training curves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Updates done.
    pub step: f64,
    /// Tokens seen.
    pub tokens: f64,
    /// Seconds of training in this process.
    pub seconds: f64,
    /// The value; NaN: a gap.
    pub value: f64,
}

/// The curves of one run.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Training loss; nats.
    pub loss: Vec<Point>,
    /// Validation loss; nats.
    pub val_loss: Vec<Point>,
    /// Share of right answers.
    pub accuracy: Vec<Point>,
    /// Learning rate.
    pub lr: Vec<Point>,
    /// Norm of the gradient before clipping.
    pub grad_norm: Vec<Point>,
    /// Tokens per second.
    pub speed: Vec<Point>,
    /// Routing records.
    pub frames: Frames,
    at: (f64, f64),
}

impl Series {
    /// The curves of these records.
    #[must_use]
    pub fn of(lines: &[Line]) -> Self {
        let mut series = Self::default();
        lines.iter().for_each(|line| series.add(line));
        series
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
                self.at = (*tokens as f64, seconds.unwrap_or(self.at.1));
                let (tokens, seconds) = self.at;
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
    /// What it does.
    pub state: Option<RunState>,
    /// Updates done.
    pub step: u64,
    /// Its curves and frames.
    pub series: Series,
    /// Speed.
    pub timing: Timing,
    /// Texts, newest last.
    pub samples: Vec<Sampled>,
    /// Weights token by token.
    pub trace: Option<Trace>,
    /// What the interventions do.
    pub effect: Option<Effect>,
    /// A folder that was looked into.
    pub peek: Option<Peek>,
    /// Other runs.
    pub others: Vec<OtherRun>,
    /// Last checkpoint.
    pub saved: Option<(u64, String)>,
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

    /// Recorded frames.
    #[must_use]
    pub fn frames(&self) -> &[Frame] {
        self.series.frames.list()
    }

    fn note(&mut self, level: Level, text: String, field: Option<String>) {
        self.log.push(Entry {
            step: self.step,
            level,
            text,
            field,
        });
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
            Event::Ready(run) => {
                self.series = Series::of(&run.lines);
                self.step = run.step;
                (self.samples, self.trace, self.effect) = (Vec::new(), None, None);
                self.saved = None;
                self.run = Some(*run);
            }
            Event::Configured { values } => {
                if let Some(run) = &mut self.run {
                    run.values = values;
                }
            }
            Event::State(state) => {
                if let RunState::Diverged { message, .. } = &state {
                    self.note(Level::Error, message.clone(), None);
                }
                if state == RunState::Empty {
                    self.run = None;
                }
                self.state = Some(state);
            }
            Event::Lines(lines) => {
                for line in &lines {
                    if let Line::Train { step, .. } = line {
                        self.step = *step;
                    }
                    self.series.add(line);
                }
            }
            Event::Frame(frame) => self.series.frames.push(*frame),
            Event::Timing(timing) => self.timing = timing,
            Event::Peeked(peek) => self.peek = Some(*peek),
            Event::History {
                folder,
                toml,
                lines,
            } => {
                self.others.retain(|other| other.folder != folder);
                let series = Series::of(&lines);
                self.others.push(OtherRun {
                    folder,
                    toml,
                    series,
                });
            }
            Event::Sampled(sample) => {
                if self.samples.len() >= MOST_SAMPLES {
                    self.samples.remove(0);
                }
                self.samples.push(*sample);
            }
            Event::Traced(trace) => self.trace = Some(*trace),
            Event::Effect(effect) => self.effect = Some(*effect),
            Event::Saved { step, path } => {
                self.note(Level::Note, format!("saved: {path}"), None);
                self.saved = Some((step, path));
            }
            Event::Notice { message } => self.note(Level::Note, message, None),
            Event::Failed {
                what,
                message,
                field,
            } => self.note(Level::Error, format!("{what}: {message}"), field),
            Event::Ended => self.ended = true,
        }
    }
}
