//! `braid eval`

use std::path::PathBuf;

use clap::Args;

use super::trained::Trained;
use super::{DeviceArgs, Failure, Outcome, USAGE, say};
use crate::records::Record;
use crate::report::grouped;

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
    let Trained {
        mut trainer,
        device,
        step,
        folder,
    } = Trained::open(
        &args.run,
        args.best,
        &args.device,
        "the loss is that of the new ones",
        |config| config.train.eval_batches = 0,
    )?;
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
