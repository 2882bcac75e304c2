//! Looking into runs on disk.

use std::path::Path;

use braid_engine::data::TaskKind;
use braid_engine::models::config::ModelConfig;
use braid_engine::{Result, checkpoint};

use super::Sink;
use crate::config::RunConfig;
use crate::form::values;
use crate::protocol::{Event, Line, Peek, RunInfo, SiteKind};
use crate::run_dir::{RunDir, Which, read_checkpoint};
use crate::sampler::parameters;
use crate::{frame_log, sample_log};

/// What is inside a run's folder.
pub(super) fn peek(folder: &str) -> Result<Peek> {
    let run = RunDir::open(Path::new(folder))?;
    let model = ModelConfig::from_json(&run.config_json()?)?;
    let mut peek = Peek {
        folder: folder.into(),
        toml: run.config_toml()?,
        vocab: model.vocab_size,
        parameters: parameters(&model)?.count() as u64,
        busy: run.is_being_written(),
        ..Peek::default()
    };
    if let Some(checkpoint) = run.checkpoint(Which::Last)? {
        let files = read_checkpoint(&checkpoint)?;
        peek.bytes = (files.model.len() + files.optimizer.map_or(0, |bytes| bytes.len())) as u64;
        if let Some(state) = &files.state {
            let state = checkpoint::read_state(state)?;
            (peek.last, peek.best) = (Some(state.step), state.best);
        }
    }
    Ok(peek)
}

/// The metrics and frames of a run on disk.
pub(super) fn history(folder: &str, sink: Sink<'_>) -> Result<()> {
    let run = RunDir::open(Path::new(folder))?;
    let (toml, lines) = (run.config_toml()?, Line::read(&run.metrics()?));
    let recorded = frame_log::read(run.path());
    if let Some(message) = recorded.notice {
        sink(Event::Notice { message });
    }
    sink(Event::History {
        folder: folder.into(),
        toml,
        lines,
        frames: recorded.frames,
    });
    Ok(())
}

/// A run on disk as it is now.
pub(super) fn look(folder: &str, sink: Sink<'_>) -> Result<()> {
    let run = RunDir::open(Path::new(folder))?;
    let config = RunConfig::parse(&run.config_toml()?, &[])?;
    let sublayers = 2 * config.model.layers;
    let (lines, recorded) = (Line::read(&run.metrics()?), frame_log::read(run.path()));
    let step = lines.iter().rev().find_map(|line| match line {
        Line::Train { step, .. } => Some(*step),
        _ => None,
    });
    sink(Event::Looked(Box::new(RunInfo {
        folder: folder.into(),
        name: format!("{} {}", config.residual.kind(), config.data_name()),
        toml: config.to_toml(),
        values: values(&config.to_toml()),
        step: step.unwrap_or(0),
        steps: config.train.steps,
        sites: (0..=sublayers)
            .map(|site| (site, SiteKind::of(site, sublayers)))
            .collect(),
        samples: sample_log::read(run.path())?,
        chance: chance(&config),
        lines,
        frames: recorded.frames,
        ..RunInfo::default()
    })));
    Ok(())
}

/// Share of right answers of who draws an answer at random.
pub(super) fn chance(config: &RunConfig) -> Option<f64> {
    let task = TaskKind::of(config.data.task.as_deref()?).ok()?;
    Some(task.chance())
}
