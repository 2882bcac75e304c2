//! `samples.jsonl`: the last texts that a run's model wrote, a line each, so that a reopened run still shows them.
//!
//! A run is as good without it: what is wrong with the file is a notice, never an error.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use braid_engine::{Error, Result};

use crate::files::{self, File};
use crate::protocol::Sampled;
use crate::records::lines_until;
use crate::run_dir::{failed, replace};

/// The file, in a run's folder.
pub const SAMPLES: &str = "samples.jsonl";

/// Texts that are read back.
const SHOWN: usize = 64;

/// Texts in the file, at most: then the newest [`SHOWN`] are kept.
const MOST: usize = 256;

/// The file, for writing. It is opened for each text, since there are few.
#[derive(Debug)]
pub(crate) struct SampleLog {
    folder: PathBuf,
    /// Lines in the file; `None`: nobody has counted.
    count: Option<usize>,
    /// Writing has failed once: nothing more is recorded.
    given_up: bool,
}

/// A text as a line.
fn line(sample: &Sampled) -> Option<String> {
    let mut value = serde_json::to_value(sample).ok()?;
    value
        .as_object_mut()?
        .insert("event".into(), "sample".into());
    Some(value.to_string() + "\n")
}

/// The last texts of a run's folder, oldest first; lines that are torn or damaged are left out. None if there is no file.
///
/// # Errors
/// If the file is there and cannot be read.
pub fn read(folder: &Path) -> Result<Vec<Sampled>> {
    let path = folder.join(SAMPLES);
    let bytes = match files::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed("read", &path, &error)),
    };
    let text = String::from_utf8_lossy(&bytes);
    let newest = text.lines().rev();
    let newest = newest.filter_map(|line| serde_json::from_str(line).ok());
    let mut samples: Vec<Sampled> = newest.take(SHOWN).collect();
    samples.reverse();
    Ok(samples)
}

impl SampleLog {
    /// For a run's folder; nothing is read or written yet.
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.into(),
            count: None,
            given_up: false,
        }
    }

    fn text(&self) -> String {
        let bytes = files::read(self.folder.join(SAMPLES)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn rewrite(&mut self, text: &str) -> Result<()> {
        self.count = Some(text.lines().count());
        replace(&self.folder, SAMPLES, text.as_bytes())
    }

    /// Drop the texts that were written after `step` updates, and a torn line.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn rewind(&mut self, step: u64) -> Result<()> {
        let text = self.text();
        let kept = lines_until(&text, step);
        if kept == text {
            return Ok(());
        }
        self.rewrite(&kept)
    }

    /// Add a text.
    ///
    /// # Errors
    /// If the file cannot be written: once, and nothing more is recorded.
    pub(crate) fn push(&mut self, sample: &Sampled) -> Result<()> {
        if self.given_up {
            return Ok(());
        }
        let pushed = self.try_push(sample);
        self.given_up = pushed.is_err();
        pushed
    }

    fn try_push(&mut self, sample: &Sampled) -> Result<()> {
        let Some(line) = line(sample) else {
            return Ok(());
        };
        let path = self.folder.join(SAMPLES);
        let error = |error| -> Error { failed("written", &path, &error) };
        let file = File::options().append(true).create(true).open(&path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .map_err(error)?;
        let count = match self.count {
            Some(count) => count + 1,
            None => self.text().lines().count(),
        };
        self.count = Some(count);
        if count <= MOST {
            return Ok(());
        }
        let text = self.text();
        let newest: Vec<&str> = text.lines().skip(count.saturating_sub(SHOWN)).collect();
        self.rewrite(&(newest.join("\n") + "\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Token;

    fn sample(step: u64) -> Sampled {
        Sampled {
            step,
            tokens: vec![Token {
                text: format!("t{step}\n"),
                probability: Some(0.25),
            }],
            temperature: 0.8,
            seed: 1,
        }
    }

    fn steps(folder: &Path) -> Vec<u64> {
        let samples = read(folder).expect("the file can be read");
        samples.iter().map(|sample| sample.step).collect()
    }

    #[test]
    fn texts_are_kept_until_the_run_goes_back() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let folder = folder.path();
        files::create_dir_all(folder).expect("it can be made");
        assert_eq!(read(folder).expect("no file is no error"), []);
        let mut log = SampleLog::new(folder);
        for step in [100, 200, 200, 300] {
            log.push(&sample(step)).expect("it can be written");
        }
        assert_eq!(read(folder).expect("the file can be read")[0], sample(100));
        log.rewind(200).expect("it can be written");
        assert_eq!(steps(folder), [100, 200, 200]);
        // A kill tears the last line.
        let path = folder.join(SAMPLES);
        let whole = files::read_to_string(&path).expect("the file is there");
        let torn = &whole.as_bytes()[..whole.len() - 9];
        File::create(&path)
            .and_then(|mut file| file.write_all(torn))
            .expect("it can be written");
        assert_eq!(steps(folder), [100, 200]);
        let mut log = SampleLog::new(folder);
        log.rewind(200).expect("it can be written");
        log.push(&sample(250)).expect("it can be written");
        assert_eq!(steps(folder), [100, 200, 250]);
    }

    #[test]
    fn the_file_stays_small_and_ends_with_the_newest() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let folder = folder.path();
        files::create_dir_all(folder).expect("it can be made");
        let mut log = SampleLog::new(folder);
        for step in 1..=MOST as u64 + 2 {
            log.push(&sample(step)).expect("it can be written");
        }
        let path = folder.join(SAMPLES);
        let text = files::read_to_string(&path).expect("the file is there");
        assert_eq!(text.lines().count(), SHOWN + 1);
        assert_eq!(steps(folder).last(), Some(&(MOST as u64 + 2)));
        assert_eq!(steps(folder).len(), SHOWN);
    }

    #[test]
    fn what_cannot_be_written_is_said_once() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut log = SampleLog::new(&folder.path().join("gone"));
        assert!(log.push(&sample(1)).is_err());
        assert!(log.push(&sample(2)).is_ok());
    }
}
