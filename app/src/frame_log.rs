//! `frames.jsonl`: the recorded frames of a run, so that its routing can be gone through again.
//!
//! The first line says every how manieth frame is kept; each further line is a [`Frame`], with numbers as exact as the
//! device's. The file is bounded: when there are too many frames or bytes, every second frame is dropped and from then on every
//! second one is left out. A line that is torn or damaged costs that frame and nothing else.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use braid_engine::{Error, Result};
use serde_json::{Value, json};

use crate::files::{self, File};
use crate::protocol::{Depth, Frame};
use crate::records::lines_until;
use crate::run_dir::{failed, replace};

/// The file, in a run's folder.
pub const FRAMES: &str = "frames.jsonl";

/// Frames that are kept, at most.
const MOST_FRAMES: usize = 2048;

/// Bytes of the file, at most: a large model's frame can have a hundred thousand.
const MOST_BYTES: u64 = 32 << 20;

/// The file, open for writing.
#[derive(Debug)]
pub(crate) struct FrameLog {
    folder: PathBuf,
    /// `None`: something went wrong, and nothing more is recorded.
    file: Option<File>,
    /// What went wrong, until somebody was told.
    trouble: Option<Error>,
    /// Every how manieth frame is kept.
    every: u64,
    /// Frames that came since it was opened.
    seen: u64,
    count: usize,
    bytes: u64,
    /// Step of the last frame in the file.
    last: Option<u64>,
    /// Step of the last frame that came.
    newest: Option<u64>,
}

/// What can be read of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// Oldest first.
    pub frames: Vec<Frame>,
    /// Bytes of the file.
    pub bytes: u64,
    /// What is wrong with it, as a sentence.
    pub notice: Option<String>,
}

/// The first line.
fn head(every: u64) -> String {
    json!({ "event": "frames", "step": 0, "every": every }).to_string() + "\n"
}

/// What the first line says; 1 without one.
fn every(text: &str) -> u64 {
    let first: Option<Value> = text
        .lines()
        .next()
        .and_then(|line| serde_json::from_str(line).ok());
    first
        .and_then(|head| head["every"].as_u64())
        .map_or(1, |every| every.max(1))
}

/// A line, if all of the frame is finite: what diverged has nothing to show.
fn line(frame: &Frame) -> Option<String> {
    let finite = |depth: &Depth| depth.input.is_finite() && depth.output.is_finite();
    if !frame.depth.iter().all(finite) {
        return None;
    }
    let mut value = serde_json::to_value(frame).ok()?;
    value
        .as_object_mut()?
        .insert("event".into(), "frame".into());
    Some(shortened(value).to_string() + "\n")
}

/// Numbers in the precision that they were computed in: half as many digits.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the device computes in f32"
)]
fn shortened(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let short = number.as_f64().map(|number| (number as f32).to_string());
            let short = short.and_then(|short| short.parse::<f64>().ok());
            short
                .filter(|short| short.is_finite())
                .map_or(Value::Number(number), Value::from)
        }
        Value::Array(list) => list.into_iter().map(shortened).collect(),
        Value::Object(all) => all
            .into_iter()
            .map(|(key, value)| (key, shortened(value)))
            .collect(),
        other => other,
    }
}

/// Read the recorded frames of a run's folder. Never fails: without them a run is as good as before.
#[must_use]
pub fn read(folder: &Path) -> Recorded {
    let path = folder.join(FRAMES);
    let bytes = match files::read(&path) {
        Ok(bytes) => bytes,
        Err(error) => {
            let notice = match error.kind() {
                io::ErrorKind::NotFound => {
                    format!("the run has no {FRAMES}: of its past, only validations are shown")
                }
                _ => failed("read", &path, &error).to_string(),
            };
            return Recorded {
                notice: Some(notice),
                ..Recorded::default()
            };
        }
    };
    let text = String::from_utf8_lossy(&bytes);
    // A torn last line is what a kill leaves, and no damage.
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    let (mut frames, mut broken) = (Vec::<Frame>::new(), 0);
    for line in whole.lines() {
        match serde_json::from_str::<Value>(line) {
            Ok(value) if value["event"] == "frames" => {}
            Ok(value) => match serde_json::from_value::<Frame>(value) {
                Ok(frame) if frames.last().is_none_or(|last| last.step < frame.step) => {
                    frames.push(frame)
                }
                _ => broken += 1,
            },
            Err(_) => broken += 1,
        }
    }
    let notice = (broken > 0).then(|| {
        let of = broken + frames.len();
        format!(
            "{broken} of {of} lines of {} are damaged and left out",
            path.display()
        )
    });
    Recorded {
        frames,
        bytes: bytes.len() as u64,
        notice,
    }
}

impl FrameLog {
    /// Open the file of a run's folder. If that fails, the first frame says so.
    pub(crate) fn open(folder: &Path) -> Self {
        let path = folder.join(FRAMES);
        let text = files::read(&path).unwrap_or_default();
        let file = File::options().append(true).create(true).open(&path);
        let (file, trouble) = match file {
            Ok(file) => (Some(file), None),
            Err(error) => (None, Some(failed("written", &path, &error))),
        };
        let mut log = Self {
            folder: folder.into(),
            file,
            trouble,
            every: 1,
            seen: 0,
            count: 0,
            bytes: 0,
            last: None,
            newest: None,
        };
        log.count(&String::from_utf8_lossy(&text));
        log
    }

    /// Count what is there.
    fn count(&mut self, text: &str) {
        let frames = text.lines().skip(1);
        self.every = every(text);
        self.bytes = text.len() as u64;
        self.count = frames.clone().count();
        let last = frames
            .last()
            .and_then(|line| serde_json::from_str::<Value>(line).ok());
        self.last = last.and_then(|frame| frame["step"].as_u64());
    }

    fn path(&self) -> PathBuf {
        self.folder.join(FRAMES)
    }

    /// Write all of it anew.
    fn rewrite(&mut self, text: &str) -> Result<()> {
        // Closed first: not every system renames onto an open file.
        (self.file, self.trouble) = (None, None);
        replace(&self.folder, FRAMES, text.as_bytes())?;
        let file = File::options().append(true).open(self.path());
        self.file = Some(file.map_err(|error| failed("written", &self.path(), &error))?);
        self.count(text);
        Ok(())
    }

    /// Drop the frames that a checkpoint of `step` updates does not contain, a torn line among them.
    ///
    /// # Errors
    /// If the file cannot be written; nothing is recorded then.
    pub(crate) fn rewind(&mut self, step: u64) -> Result<()> {
        let text = files::read(self.path()).unwrap_or_default();
        let kept = lines_until(&String::from_utf8_lossy(&text), step);
        let headed = kept
            .lines()
            .next()
            .is_some_and(|first| first.contains("\"frames\""));
        let text = if headed { kept } else { head(1) + &kept };
        (self.seen, self.newest) = (0, None);
        self.rewrite(&text)
    }

    /// Record a frame, if it is due; `always`: even if it is not.
    ///
    /// # Errors
    /// If the file cannot be written: once, and nothing more is recorded.
    pub(crate) fn push(&mut self, frame: &Frame, always: bool) -> Result<()> {
        if let Some(trouble) = self.trouble.take() {
            return Err(trouble);
        }
        let again = self.newest == Some(frame.step);
        let due = !again && self.seen.is_multiple_of(self.every);
        self.seen += u64::from(!again);
        self.newest = Some(frame.step);
        if !(due || always) || self.last.is_some_and(|last| last >= frame.step) {
            return Ok(());
        }
        let (Some(file), Some(mut text)) = (self.file.as_mut(), line(frame)) else {
            return Ok(());
        };
        if self.bytes == 0 {
            text = head(self.every) + &text;
        }
        if let Err(error) = file.write_all(text.as_bytes()) {
            self.file = None;
            return Err(failed("written", &self.path(), &error));
        }
        self.bytes += text.len() as u64;
        (self.count, self.last) = (self.count + 1, Some(frame.step));
        if self.count > MOST_FRAMES || (self.bytes > MOST_BYTES && self.count > 1) {
            return self.thin();
        }
        Ok(())
    }

    /// Keep every second frame, the first among them.
    fn thin(&mut self) -> Result<()> {
        let path = self.path();
        let text = files::read(&path).map_err(|error| failed("read", &path, &error))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut kept = head(2 * self.every);
        for line in text.lines().skip(1).step_by(2) {
            kept.push_str(line);
            kept.push('\n');
        }
        self.rewrite(&kept)
    }
}
