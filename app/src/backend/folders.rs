//! Looking into runs on disk.

use std::path::Path;

use braid_engine::data::TaskKind;
use braid_engine::models::config::ModelConfig;
use braid_engine::{Error, Result, checkpoint};

use super::Sink;
use crate::config::RunConfig;
use crate::files;
use crate::form::values;
use crate::protocol::{Event, KeptRun, Line, Peek, RunInfo, SiteKind};
use crate::run_dir::{RunDir, Which, checkpoint_bytes, read_state_text, remove_run};
use crate::run_name::RUNS;
use crate::sampler::parameters;
use crate::{frame_log, sample_log};

/// What is inside a run's folder.
pub(super) async fn peek(folder: &str) -> Result<Peek> {
    RunDir::bring_summary(Path::new(folder)).await?;
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
        peek.bytes = checkpoint_bytes(&checkpoint);
        if let Some(state) = read_state_text(&checkpoint)? {
            let state = checkpoint::read_state(&state)?;
            (peek.last, peek.best) = (Some(state.step), state.best);
        }
    }
    Ok(peek)
}

/// The metrics and frames of a run on disk.
pub(super) async fn history(folder: &str, sink: Sink<'_>) -> Result<()> {
    RunDir::bring_history(Path::new(folder)).await?;
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
pub(super) async fn look(folder: &str, sink: Sink<'_>) -> Result<()> {
    RunDir::bring_history(Path::new(folder)).await?;
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

/// Bytes of all files below a folder.
fn bytes(folder: &Path) -> u64 {
    let entries = files::read_dir(folder).into_iter().flatten().flatten();
    let each = entries.map(|entry| {
        let path = entry.path();
        if files::is_dir(&path) {
            bytes(&path)
        } else {
            files::len(&path).unwrap_or(0)
        }
    });
    each.sum()
}

/// The runs in the folder of runs, the one that was saved last first; what is damaged is listed without a name.
pub(super) async fn list() -> Vec<KeptRun> {
    let entries = files::read_dir(Path::new(RUNS)).into_iter().flatten();
    let names = entries.flatten().map(|entry| entry.file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let mut runs = Vec::new();
    // What begins with a dot is being made.
    for name in names.filter(|name| !name.starts_with('.')) {
        let folder = format!("{RUNS}/{name}");
        let path = Path::new(&folder);
        if !files::is_dir(path) {
            continue;
        }
        let about = about(path).await.unwrap_or_default();
        runs.push(KeptRun {
            bytes: bytes(path),
            saved: RunDir::saved_at(path),
            folder,
            ..about
        });
    }
    // Names begin with the time of the start: of two that were saved in one second, the younger comes first.
    runs.sort_by(|a, b| (b.saved, &b.folder).cmp(&(a.saved, &a.folder)));
    runs
}

async fn about(path: &Path) -> Result<KeptRun> {
    RunDir::bring_summary(path).await?;
    let run = RunDir::open(path)?;
    let config = RunConfig::parse(&run.config_toml()?, &[])?;
    let state = match run.checkpoint(Which::Last)? {
        Some(checkpoint) => read_state_text(&checkpoint)?,
        None => None,
    };
    let state = state.map(|state| checkpoint::read_state(&state));
    Ok(KeptRun {
        name: format!("{} {}", config.residual.kind(), config.data_name()),
        last: state.transpose()?.map(|state| state.step),
        steps: config.train.steps,
        ..KeptRun::default()
    })
}

/// Delete a run; `loaded` is the folder of the one that is open.
pub(super) fn delete(folder: &str, loaded: Option<&Path>) -> Result<()> {
    let path = Path::new(folder);
    if loaded == Some(path) {
        return Err(Error::File(format!(
            "the run {folder} is loaded; stop it first, then delete it"
        )));
    }
    RunDir::open(path)?;
    remove_run(path)
}
