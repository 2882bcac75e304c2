//! `braid convert`

use std::path::PathBuf;

use braid_engine::checkpoint::{self, SCHEMA, State};
use braid_engine::data::{Dataset, Tokenizer};
use braid_engine::device::{Device, Precision};
use braid_engine::models::config::ModelConfig;
use braid_engine::trainer::{Evaluation, Trainer};
use clap::Args;
use serde_json::json;

use super::{DeviceArgs, Failure, Outcome, USAGE, notice, say};
use crate::config::RunConfig;
use crate::convert::{Origin, Start, carry, start_of};
use crate::report::grouped;
use crate::run_dir::{
    CheckpointFiles, Identity, RunDir, RunWriter, Which, read_checkpoint, refuse_occupied,
};
use crate::run_name::default_folder;
use crate::sampler::parameters;
use crate::session::device_name;

/// `--set` may change these.
const MAY_CHANGE: [&str; 2] = ["residual.", "train."];

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  braid convert runs/base --to delta --set residual.mode=centered --out runs/delta
  braid convert runs/base --to dense_former --set train.lr=5e-5 --set train.lr_mult.routing=100
  braid train --resume runs/delta

Which mechanism starts how, and the losses that were measured: docs/conversion.md")]
pub(super) struct ConvertArgs {
    /// Folder of a trained run with the standard mechanism
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The mechanism to convert to: `braid list` shows them
    #[arg(long, value_name = "KIND")]
    to: String,
    /// A setting of the mechanism (residual.mode=centered) or of the training that follows (train.steps=500); may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Folder of the new run [default: runs/<time>-<mechanism>-<data>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The checkpoint with the lowest validation loss instead of the last one
    #[arg(long)]
    best: bool,
    /// Convert to a mechanism that does not start near the standard model as well, to see its loss jump
    #[arg(long)]
    anyway: bool,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// The configuration of the new run.
fn configuration(args: &ConvertArgs, before: &RunConfig) -> Result<RunConfig, Failure> {
    let mut settings = vec![format!("residual.kind={}", args.to)];
    for setting in &args.settings {
        let key = setting.trim_start();
        if key.starts_with("residual.kind") {
            return Err(Failure::new(
                USAGE,
                format!("`--set {setting}`: the mechanism is given by --to"),
            ));
        }
        if !MAY_CHANGE.iter().any(|section| key.starts_with(section)) {
            let message = format!(
                "`--set {setting}`: a conversion keeps the model's shape and its data; only residual.* and train.* may change"
            );
            return Err(Failure::new(USAGE, message));
        }
        settings.push(setting.clone());
    }
    Ok(RunConfig::parse(&before.to_toml(), &settings)?)
}

/// Refuse what cannot be, or would not be worth it.
fn check(args: &ConvertArgs, before: &RunConfig, after: &RunConfig) -> Result<Start, Failure> {
    let refuse = |message: String| Err(Failure::new(USAGE, message));
    let kind = before.residual.kind();
    if start_of(&before.residual) != Start::Same {
        return refuse(format!(
            "the run {} has the mechanism {kind}; only a standard model can be converted, because only its weights mean the \
             same in every mechanism",
            args.run.display()
        ));
    }
    match start_of(&after.residual) {
        Start::Same => refuse(
            "the run is a standard model already; name another mechanism with --to (`braid list`)"
                .into(),
        ),
        Start::Jump(why) if !args.anyway => refuse(format!(
            "{} with these settings does not start near the standard model: {why}. Most of what was learnt would be lost; \
             give --anyway to see it",
            args.to
        )),
        start => Ok(start),
    }
}

/// Held-out loss of a model over the whole validation part.
fn evaluate(
    device: &Device,
    model: &ModelConfig,
    config: &RunConfig,
    data: &Dataset,
    values: &[f32],
) -> Result<Evaluation, Failure> {
    let mut how = config.train_config();
    how.eval_batches = 0;
    let mut trainer = Trainer::new(device.executor(), model.clone(), how, data.clone())?;
    trainer.restore(0, values, None)?;
    Ok(pollster::block_on(trainer.evaluate())?)
}

pub(super) fn run(args: &ConvertArgs) -> Outcome {
    let run = RunDir::open(&args.run)?;
    let before = RunConfig::parse(&run.config_toml()?, &[])?;
    let after = configuration(args, &before)?;
    let start = check(args, &before, &after)?;
    let out = args
        .out
        .clone()
        .unwrap_or_else(|| default_folder(&after, crate::desk::calendar()));
    refuse_occupied(&out)?;

    let folder = run.need_checkpoint(if args.best { Which::Best } else { Which::Last })?;
    let files = read_checkpoint(&folder)?;
    let state = files
        .state
        .as_deref()
        .map(checkpoint::read_state)
        .transpose()?;
    let tokenizer_json = run.tokenizer_json()?;
    let tokenizer = Tokenizer::from_json(&tokenizer_json)?;
    let data = super::train::dataset(&before, Some(&tokenizer))?;
    let fingerprint = data.fingerprint();
    if state
        .as_ref()
        .is_some_and(|state| state.data != fingerprint)
    {
        notice(
            "the data are not those that the run was trained on; both losses are those of the new ones",
        );
    }
    let [model, new_model] = [&before, &after].map(|config| config.model_config(data.vocab_size()));
    let (model, new_model) = (model?, new_model?);
    run.same_model(&model)?;
    let (old, new) = (parameters(&model)?, parameters(&new_model)?);
    let values = checkpoint::read(&old, &files.model, None)?.values;
    let converted = carry(&old, &values, &new, after.train.seed)?;

    let (device, _) = args.device.open(Precision::F32)?;
    let then = evaluate(&device, &model, &before, &data, &values)?;
    if !then.val_loss.is_finite() {
        let message = "the checkpoint's validation loss is not finite: its weights are damaged";
        return Err(Failure::new(USAGE, message));
    }
    let now = evaluate(&device, &new_model, &after, &data, &converted)?;

    let origin = Origin {
        checkpoint: folder.display().to_string(),
        step: state.as_ref().map_or(0, |state| state.step),
        from: before.residual.kind().into(),
        to: after.residual.kind().into(),
        added: new.count() - old.count(),
        before: then.val_loss,
        after: now.val_loss,
        val_tokens: then.tokens,
    };
    let new_state = State {
        schema: SCHEMA,
        step: 0,
        seed: after.train.seed,
        data: fingerprint,
        best: None,
        device: device_name(&device),
    };
    let mut writer = RunWriter::create(
        &out,
        &Identity {
            config_toml: &origin.above(&after.to_toml()),
            config_json: &new_model.to_json(),
            tokenizer_json: &tokenizer_json,
            text: None,
        },
    )?;
    origin.write(&out)?;
    // The optimiser begins anew: its moments belong to the old training.
    let none = vec![0.0; new.arena_len()];
    let state = serde_json::to_string_pretty(&new_state).expect("numbers and texts are JSON");
    writer.save(
        0,
        &CheckpointFiles {
            model: checkpoint::model_file(&new, &converted)?,
            optimizer: Some(checkpoint::optimizer_file(&new, &none, &none)?),
            state: Some(state + "\n"),
        },
        false,
    )?;
    if args.json {
        say(
            json!({ "run": out.display().to_string(), "origin": origin, "start": words(start).0 })
                .to_string(),
        );
        return Ok(());
    }
    tell(&origin, start, [&then, &now], &after, &device);
    say(format!("run        {}", out.display()));
    say(format!("fine-tune  braid train --resume {}", out.display()));
    Ok(())
}

/// A word for a start, and why.
fn words(start: Start) -> (&'static str, &'static str) {
    match start {
        Start::Same => ("same", ""),
        Start::Exact(why) => ("exact", why),
        Start::Near(why) => ("near", why),
        Start::Jump(why) => ("jump", why),
    }
}

/// For people.
fn tell(
    origin: &Origin,
    start: Start,
    [then, now]: [&Evaluation; 2],
    after: &RunConfig,
    device: &Device,
) {
    say(format!(
        "from       {} ({}, step {})",
        origin.checkpoint,
        origin.from,
        grouped(origin.step)
    ));
    let (word, why) = words(start);
    say(format!("to         {}: {word}; {why}", origin.to));
    say(format!(
        "parameters {} new ones at their initial values, all others carried over",
        grouped(origin.added as u64)
    ));
    say(format!("device     {}", device.report()));
    say(format!(
        "val loss   {:.6} before, {:.6} after ({:+.2e}), over {} tokens",
        origin.before,
        origin.after,
        origin.after - origin.before,
        grouped(origin.val_tokens)
    ));
    if let (Some(then), Some(now)) = (then.accuracy, now.accuracy) {
        say(format!(
            "answers    {:.1} % right before, {:.1} % after",
            100.0 * then,
            100.0 * now
        ));
    }
    say(format!(
        "rates      {} for the model, {} times that for the mechanism, {} steps (--set train.lr=.., train.lr_mult.routing=.., train.steps=..)",
        after.train.lr, after.train.lr_mult.routing, after.train.steps
    ));
}
