//! `braid compare`

use std::path::PathBuf;

use clap::Args;

use super::Outcome;
use super::sweep::{HowArgs, train};
use crate::sweep::file::compare;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  braid compare standard delta dar --seeds 3 --steps 500
  braid compare one.toml two.toml --seeds 5 --jobs 2
  braid compare standard attn_res --config base.toml --set model.layers=8

With one seed all have the same initial values and see the same batches. Run it again after a stop: it goes on.
docs/sweeps.md describes every figure.")]
pub(super) struct CompareArgs {
    /// Configuration files, or kinds of residual mechanism; the others are compared with the first
    #[arg(value_name = "CONFIG", required = true)]
    wanted: Vec<String>,
    /// Configuration file (TOML) under all of them
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Change one setting of all of them, such as model.layers=6; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    #[command(flatten)]
    how: HowArgs,
}

pub(super) fn run(args: &CompareArgs) -> Outcome {
    let base = args.config.as_deref();
    let sweep = compare(&args.wanted, base, &args.settings, args.how.changes())?;
    train(&sweep, &args.how)
}
