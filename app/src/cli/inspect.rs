//! `braid inspect`

use std::path::{Path, PathBuf};

use braid_engine::checkpoint;
use braid_engine::error::bytes_for_people;
use braid_engine::models::config::ModelConfig;
use clap::Args;
use serde_json::json;

use super::{Failure, Outcome, USAGE, say};
use crate::convert::Origin;
use crate::frame_log::{self, Recorded};
use crate::protocol::Frame;
use crate::report::{active_parameters, grouped, parameter_table, parts};
use crate::run_dir::{RunDir, Which, read_checkpoint, read_text};
use crate::sampler::parameters;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  braid inspect runs/20260101-120000-dar-recall
  braid inspect runs/20260101-120000-dar-recall/checkpoints/step-000200")]
pub(super) struct InspectArgs {
    /// A run's folder, a checkpoint's folder, or its model.safetensors
    #[arg(value_name = "CHECKPOINT|RUN")]
    path: PathBuf,
    /// List every tensor
    #[arg(long)]
    tensors: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// The checkpoint's folder.
fn checkpoint_folder(path: &Path) -> Result<PathBuf, Failure> {
    if path.join("config.toml").is_file() {
        return Ok(RunDir::open(path)?.need_checkpoint(Which::Last)?);
    }
    if path.is_file() {
        return Ok(path.parent().map(Path::to_path_buf).unwrap_or_default());
    }
    if path.join("model.safetensors").is_file() {
        return Ok(path.into());
    }
    let shown = path.display();
    let message = if path.exists() {
        format!(
            "{shown} is neither a run nor a checkpoint: it has no config.toml and no model.safetensors"
        )
    } else {
        format!("there is nothing at {shown}")
    };
    Err(Failure::new(USAGE, message))
}

/// `config.json` beside the weights, or of the run that they belong to.
fn config_of(folder: &Path) -> Result<PathBuf, Failure> {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.into());
    let beside = absolute
        .ancestors()
        .take(3)
        .map(|ancestor| ancestor.join("config.json"));
    beside
        .into_iter()
        .find(|path| path.is_file())
        .ok_or_else(|| {
            let message = format!(
                "{} has no config.json, neither beside it nor in the run above it",
                folder.display()
            );
            Failure::new(USAGE, message)
        })
}

/// The recorded frames of a run; `None` for a checkpoint.
fn recorded(path: &Path) -> Option<Recorded> {
    path.join("config.toml")
        .is_file()
        .then(|| frame_log::read(path))
}

/// `512, steps 10 to 2,000, 3.1 MB`, or why there are none.
fn frames_line(recorded: &Recorded) -> String {
    let words = match (recorded.frames.first(), recorded.frames.last()) {
        (Some(first), Some(last)) => format!(
            "{} recorded, steps {} to {}, {}",
            grouped(recorded.frames.len() as u64),
            grouped(first.step),
            grouped(last.step),
            bytes_for_people(recorded.bytes)
        ),
        _ => "none recorded".into(),
    };
    match &recorded.notice {
        Some(notice) => format!("{words} ({notice})"),
        None => words,
    }
}

pub(super) fn run(args: &InspectArgs) -> Outcome {
    let folder = checkpoint_folder(&args.path)?;
    let config_json = read_text(&config_of(&folder)?)?;
    let model = ModelConfig::from_json(&config_json)?;
    let parameters = parameters(&model)?;
    let files = read_checkpoint(&folder)?;
    let tensors = checkpoint::read(&parameters, &files.model, files.optimizer.as_deref())?;
    let state = files
        .state
        .as_deref()
        .map(checkpoint::read_state)
        .transpose()?;
    let norm = |number: usize| {
        let values = &tensors.values[parameters.range(number)];
        values
            .iter()
            .map(|&v| f64::from(v) * f64::from(v))
            .sum::<f64>()
            .sqrt()
    };
    let sizes = [
        ("model.safetensors", files.model.len()),
        (
            "optimizer.safetensors",
            files.optimizer.as_ref().map_or(0, Vec::len),
        ),
    ];
    let recorded = recorded(&args.path);
    let origin = Origin::read(&args.path)?;
    if args.json {
        let parts: serde_json::Map<_, _> = parts(&parameters)
            .into_iter()
            .map(|part| {
                let numbers = json!({ "numbers": part.numbers, "tensors": part.tensors, "decayed": part.decayed });
                (part.name.to_owned(), numbers)
            })
            .collect();
        let mut all = json!({
            "checkpoint": folder.display().to_string(),
            "config": model,
            "state": state,
            "parameters": parameters.count(),
            "active_parameters": active_parameters(&model, &parameters),
            "parts": parts,
            "bytes": sizes.iter().map(|(name, bytes)| ((*name).to_owned(), (*bytes).into())).collect::<serde_json::Map<_, _>>(),
        });
        if let Some(recorded) = &recorded {
            let step = |frame: Option<&Frame>| frame.map(|frame| frame.step);
            all["frames"] = json!({
                "count": recorded.frames.len(),
                "first": step(recorded.frames.first()),
                "last": step(recorded.frames.last()),
                "bytes": recorded.bytes,
                "notice": recorded.notice,
            });
        }
        if let Some(origin) = &origin {
            all["origin"] = json!(origin);
        }
        if args.tensors {
            let list = parameters.specs().iter().enumerate().map(|(number, spec)| {
                json!({ "name": spec.name, "shape": spec.shape.dims(), "decay": spec.group.decay, "norm": norm(number) })
            });
            all["tensors"] = list.collect();
        }
        say(all.to_string());
        return Ok(());
    }
    say(format!("checkpoint {}", folder.display()));
    if let Some(origin) = &origin {
        say(format!("origin     {}", origin.words()));
    }
    if let Some(state) = &state {
        say(format!(
            "step       {}, seed {}, trained on {}",
            grouped(state.step),
            state.seed,
            state.device
        ));
        if let Some((loss, step)) = state.best {
            say(format!(
                "best       val loss {loss:.4} at step {}",
                grouped(step)
            ));
        }
    }
    for (name, bytes) in sizes.into_iter().filter(|(_, bytes)| *bytes > 0) {
        say(format!(
            "file       {name}, {}",
            bytes_for_people(bytes as u64)
        ));
    }
    if let Some(recorded) = &recorded {
        say(format!("frames     {}", frames_line(recorded)));
    }
    say(format!("\nconfiguration\n{}", model.to_json()));
    say(format!("parameters\n{}", parameter_table(&parameters)));
    if model.experts().is_some() {
        say(format!(
            "  {:<13} {:>13}  that one token uses\n",
            "active",
            grouped(active_parameters(&model, &parameters) as u64)
        ));
    }
    if args.tensors {
        say("tensors (D: decayed)");
        for (number, spec) in parameters.specs().iter().enumerate() {
            let decay = if spec.group.decay { 'D' } else { ' ' };
            say(format!(
                "  {:<52} {:<14} {decay}  norm {:.4}",
                spec.name,
                spec.shape.to_string(),
                norm(number)
            ));
        }
    }
    Ok(())
}
