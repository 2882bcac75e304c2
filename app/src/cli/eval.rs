//! `braid eval`

use std::path::PathBuf;

use braid_engine::checkpoint;
use braid_engine::data::Tokenizer;
use braid_engine::device::Precision;
use braid_engine::trainer::Trainer;
use clap::Args;

use super::{DeviceArgs, Failure, Outcome, USAGE, notice, say};
use crate::config::RunConfig;
use crate::records::Record;
use crate::report::grouped;
use crate::run_dir::{RunDir, Which, read_checkpoint};

#[derive(Debug, Args)]
#[command(after_help = "Example: braid eval runs/20260101-120000-dar-recall --best")]
pub(super) struct EvalArgs {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The checkpoint with the lowest validation loss instead of the last one
    #[arg(long)]
    best: bool,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &EvalArgs) -> Outcome {
    let run = RunDir::open(&args.run)?;
    let mut config = RunConfig::parse(&run.config_toml()?, &[])?;
    config.train.eval_batches = 0;
    let folder = run.need_checkpoint(if args.best { Which::Best } else { Which::Last })?;
    let files = read_checkpoint(&folder)?;
    let tokenizer = Tokenizer::from_json(&run.tokenizer_json()?)?;
    let data = super::train::dataset(&config, Some(&tokenizer))?;
    let state = files
        .state
        .as_deref()
        .map(checkpoint::read_state)
        .transpose()?;
    if let Some(state) = state
        .as_ref()
        .filter(|state| state.data != data.fingerprint())
    {
        notice(format!(
            "the data are not those that the run was trained on (fingerprint {}, now {}): the loss is that of the new ones",
            state.data,
            data.fingerprint()
        ));
    }
    let step = state.map_or(0, |state| state.step);
    let model = config.model_config(data.vocab_size())?;
    run.same_model(&model)?;
    let (device, _) = args.device.open(Precision::F32)?;
    let mut trainer = Trainer::new(device.executor(), model, config.train_config(), data)?;
    let tensors = checkpoint::read(trainer.parameters(), &files.model, None)?;
    trainer.restore(step, &tensors.values, None)?;
    let evaluation = pollster::block_on(trainer.evaluate())?;
    if !evaluation.val_loss.is_finite() {
        return Err(Failure::new(
            USAGE,
            "the checkpoint's validation loss is not finite: its weights are damaged",
        ));
    }
    if args.json {
        let record = Record::Eval {
            step,
            val_loss: evaluation.val_loss,
            val_tokens: evaluation.tokens,
            bits_per_byte: evaluation.bits_per_byte,
            accuracy: evaluation.accuracy,
        };
        say(record.to_line());
        return Ok(());
    }
    say(format!(
        "checkpoint {} (step {})",
        folder.display(),
        grouped(step)
    ));
    say(format!("device     {}", device.report()));
    say(format!(
        "val loss   {:.4}, over {} tokens",
        evaluation.val_loss,
        grouped(evaluation.tokens)
    ));
    if let Some(bits) = evaluation.bits_per_byte {
        say(format!("           {bits:.4} bits per byte of text"));
    }
    if let Some(accuracy) = evaluation.accuracy {
        say(format!("answers    {:.1} % right", 100.0 * accuracy));
    }
    Ok(())
}
