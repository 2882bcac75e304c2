//! Looking into runs on disk.

use std::path::Path;

use braid_engine::models::config::ModelConfig;
use braid_engine::{Result, checkpoint};

use super::Sink;
use crate::frame_log;
use crate::protocol::{Event, Line, Peek};
use crate::run_dir::{RunDir, Which, read_checkpoint};
use crate::sampler::parameters;

/// What is inside a run's folder.
pub(super) fn peek(folder: &str) -> Result<Peek> {
    let run = RunDir::open(Path::new(folder))?;
    let model = ModelConfig::from_json(&run.config_json()?)?;
    let mut peek = Peek {
        folder: folder.into(),
        toml: run.config_toml()?,
        vocab: model.vocab_size,
        parameters: parameters(&model)?.count() as u64,
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
