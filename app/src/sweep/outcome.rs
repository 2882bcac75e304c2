//! How far a run is, and what came out: read from its folder.

use std::path::Path;

use braid_engine::checkpoint;
use braid_engine::models::config::ModelConfig;
use braid_engine::{Error, Result};
use serde::Serialize;
use serde_json::Value;

use super::plan::Planned;
use crate::config::RunConfig;
use crate::run_dir::{RunDir, Which, read_text};
use crate::sampler::parameters;

/// How far a run is.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// There is no folder.
    Absent,
    /// Its last checkpoint has seen so many updates; none before the first one.
    Part(u64),
    /// All updates are done.
    Finished(Outcome),
    /// It diverged at this update, and would again.
    Diverged(u64),
}

/// What a finished run is compared by.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Held-out loss after the last update; nats.
    pub val_loss: f64,
    /// Tokens that it is a mean over.
    pub val_tokens: u64,
    /// The loss as bits per byte; files only.
    pub bits_per_byte: Option<f64>,
    /// Share of right answers; tasks only.
    pub accuracy: Option<f64>,
    /// Loss of the last batch; nats.
    pub loss: Option<f64>,
    /// Updates.
    pub steps: u64,
    /// Trained numbers.
    pub parameters: usize,
    /// Hash of the data.
    pub data: String,
    /// What computed it last.
    pub device: String,
    /// Seconds of training, validations and checkpoints between its updates included; of a run in parts, their sum.
    pub seconds: f64,
    /// Tokens per second: the median over updates.
    pub tokens_per_s: f64,
}

/// What `metrics.jsonl` says.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// The last validation.
    pub(crate) evaluation: Value,
    /// The last update.
    train: Value,
    /// The update that diverged.
    pub(crate) diverged: Option<u64>,
    /// Of training, over all processes.
    pub(crate) seconds: f64,
    rates: Vec<f64>,
}

impl Metrics {
    pub(crate) fn read(text: &str) -> Self {
        let mut metrics = Self::default();
        let mut part = 0.0;
        for line in text.lines() {
            // A line that a kill has cut short is none.
            let Ok(record) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            match record["event"].as_str() {
                Some("train") => {
                    let seconds = record["seconds"].as_f64().unwrap_or(0.0);
                    // Another process begins to count anew.
                    if seconds < part {
                        metrics.seconds += part;
                    }
                    part = seconds;
                    metrics.rates.extend(record["tokens_per_s"].as_f64());
                    metrics.diverged = None;
                    metrics.train = record;
                }
                Some("eval") => metrics.evaluation = record,
                Some("error") => metrics.diverged = record["step"].as_u64(),
                _ => {}
            }
        }
        metrics.seconds += part;
        metrics
    }

    /// Tokens per second, the median.
    pub(crate) fn rate(&mut self) -> f64 {
        self.rates.sort_by(f64::total_cmp);
        self.rates
            .get(self.rates.len() / 2)
            .copied()
            .unwrap_or(f64::NAN)
    }
}

/// How far the run in this folder is.
///
/// # Errors
/// If the folder is something else, or damaged.
pub fn progress(folder: &Path) -> Result<Progress> {
    if !folder.exists() {
        return Ok(Progress::Absent);
    }
    let run = RunDir::open(folder)?;
    let config = RunConfig::parse(&run.config_toml()?, &[])?;
    let mut metrics = Metrics::read(&run.metrics()?);
    if let Some(step) = metrics.diverged {
        return Ok(Progress::Diverged(step));
    }
    let Some(checkpoint) = run.checkpoint(Which::Last)? else {
        return Ok(Progress::Part(0));
    };
    let state = checkpoint::read_state(&read_text(&checkpoint.join("state.json"))?)?;
    if state.step < config.train.steps {
        return Ok(Progress::Part(state.step));
    }
    let evaluation = &metrics.evaluation;
    let at_end = evaluation["step"].as_u64() == Some(state.step);
    let Some(val_loss) = evaluation["val_loss"].as_f64().filter(|_| at_end) else {
        return Err(Error::File(format!(
            "{}: all {} updates are done, but metrics.jsonl has no validation loss after the last one; remove the folder to \
             train the run anew",
            folder.display(),
            state.step
        )));
    };
    let model = ModelConfig::from_json(&run.config_json()?)?;
    Ok(Progress::Finished(Outcome {
        val_loss,
        val_tokens: evaluation["val_tokens"].as_u64().unwrap_or(0),
        bits_per_byte: evaluation["bits_per_byte"].as_f64(),
        accuracy: evaluation["accuracy"].as_f64(),
        loss: metrics.train["loss"].as_f64(),
        steps: state.step,
        parameters: parameters(&model)?.count(),
        data: state.data,
        device: state.device,
        seconds: metrics.seconds,
        tokens_per_s: metrics.rate(),
    }))
}

/// Refuse a folder that holds another run than the one that is planned there.
///
/// # Errors
/// Names the first setting that differs.
pub fn refuse_another(folder: &Path, planned: &RunConfig) -> Result<()> {
    let there = RunConfig::parse(&RunDir::open(folder)?.config_toml()?, &[])?;
    match there.difference(planned, &[]) {
        None => Ok(()),
        Some((key, there, now)) => Err(Error::File(format!(
            "{} holds a run with `{key}` {there}, now it is to be {now}: one table cannot have both. Set it back, choose \
             another folder (--out), or remove that one",
            folder.display()
        ))),
    }
}

/// How far a planned run is.
///
/// # Errors
/// If something else lies in its place, or it was trained otherwise.
pub fn progress_of(run: &Planned) -> Result<Progress> {
    let progress = progress(&run.folder)?;
    if progress != Progress::Absent {
        refuse_another(&run.folder, &run.config)?;
    }
    Ok(progress)
}

#[cfg(test)]
mod tests {
    use super::Metrics;

    fn line(step: u64, seconds: f64, rate: f64) -> String {
        format!(
            r#"{{"event":"train","step":{step},"loss":1.5,"tokens_per_s":{rate},"seconds":{seconds}}}"#
        )
    }

    #[test]
    fn the_parts_of_a_run_add_up() {
        let lines = [
            line(1, 1.0, 10.0),
            line(2, 2.5, 30.0),
            line(3, 0.5, 20.0),
            "{\"event\":\"tra".into(),
        ];
        let mut metrics = Metrics::read(&lines.join("\n"));
        assert!((metrics.seconds - 3.0).abs() < 1e-12);
        assert!((metrics.rate() - 20.0).abs() < 1e-12);
        assert_eq!(metrics.train["step"], 3);
    }

    #[test]
    fn a_run_that_was_taken_up_after_a_divergence_goes_on() {
        let error = r#"{"event":"error","step":2,"code":"non_finite"}"#.to_owned();
        let all = [line(1, 1.0, 1.0), error, line(2, 2.0, 1.0)];
        assert_eq!(Metrics::read(&all[..2].join("\n")).diverged, Some(2));
        assert_eq!(Metrics::read(&all.join("\n")).diverged, None);
    }
}
