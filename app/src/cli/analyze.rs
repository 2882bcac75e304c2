//! `braid analyze`

use std::path::PathBuf;
use std::time::Instant;

use braid_engine::trainer::{StudyOptions, Trainer};
use clap::Args;
use serde_json::json;

use super::trained::Trained;
use super::{DeviceArgs, Failure, Outcome, USAGE, say};
use crate::analyses::table::Table;
use crate::analyses::{Analyses, Cost, Part, Subject};
use crate::report::grouped;
use crate::run_dir::write_file;

/// The file with everything.
const FILE: &str = "analysis.json";
/// The folder of tables beside it.
const TABLES: &str = "analysis";
/// Training steps that are timed, after one that is not.
const TIMED_STEPS: u32 = 3;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  braid analyze runs/20260101-120000-dar-recall
  braid analyze runs/20260101-120000-dar-recall --only rescue --only similarity --sequences 256

Writes analysis.json and, in the folder analysis, a CSV file for each table. docs/analyses.md defines every figure.
A weight is not importance: `routes` and `rescue` say what would be missed.")]
pub(super) struct AnalyzeArgs {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The checkpoint with the lowest validation loss instead of the last one
    #[arg(long)]
    best: bool,
    /// Do this only; may be repeated
    #[arg(long, value_name = "ANALYSIS", value_parser = part, long_help = "Do this only: routing, depth, states, similarity, rescue or routes; may be repeated")]
    only: Vec<Part>,
    /// Sequences of the validation part to look at, from its start; 0: all
    #[arg(long, default_value_t = 64, value_name = "N")]
    sequences: usize,
    /// Draws of the intervals
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u32).range(20..=100_000))]
    draws: u32,
    /// The same seed gives the same intervals
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Folder to write to instead of the run's
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

fn part(name: &str) -> Result<Part, String> {
    let mut parts = Part::ALL.into_iter();
    parts.find(|part| part.name() == name).ok_or_else(|| {
        let names = Part::ALL.map(Part::name);
        format!(
            "there is no analysis `{name}`; there are {}",
            names.join(", ")
        )
    })
}

pub(super) fn run(args: &AnalyzeArgs) -> Outcome {
    let Trained {
        mut trainer,
        device,
        step,
        folder,
    } = Trained::open(
        &args.run,
        args.best,
        &args.device,
        "the figures are those of the new ones",
        |_| {},
    )?;

    let options = StudyOptions {
        sequences: args.sequences,
        draws: args.draws as usize,
        seed: args.seed,
    };
    let mut analyses = Analyses::default();
    let began = Instant::now();
    let study = pollster::block_on(trainer.study(&options))?;
    analyses.costs.push(cost("study", began));
    let loss = study.routing_report(args.seed).loss;
    if !loss.value.is_finite() {
        let message = "the loss of the checkpoint is not finite: its weights are damaged";
        return Err(Failure::new(USAGE, message));
    }
    if !args.json {
        say(format!(
            "checkpoint {} (step {})",
            folder.display(),
            grouped(step)
        ));
        say(format!("device     {}", device.report()));
        say(format!(
            "looked at  {} sequences of {} tokens; held-out loss {:.4} [{:.4}, {:.4}]",
            study.sequences(),
            study.context(),
            loss.value,
            loss.low,
            loss.high
        ));
        say("brackets   95 % of draws of sequences with replacement\n");
    }
    let mut tables: Vec<Table> = Vec::new();
    for part in Part::ALL
        .into_iter()
        .filter(|part| args.only.is_empty() || args.only.contains(part))
    {
        let began = Instant::now();
        let found = pollster::block_on(analyses.run(&mut trainer, &study, part, args.seed))?;
        analyses.costs.push(cost(part.name(), began));
        if !args.json {
            let kind = trainer.model().residual.kind();
            match (part, found.is_empty()) {
                (Part::Routing | Part::Routes, true) => {
                    say(format!("{}: `{kind}` has no depth weights\n", part.name()))
                }
                _ => found
                    .iter()
                    .filter(|table| table.shown > 0)
                    .for_each(|table| say(table.text())),
            }
        }
        tables.extend(found);
    }
    // Last, because it changes the model: only the copy in memory, which is not saved.
    analyses.in_steps(seconds_per_step(&mut trainer)?);
    tables.push(analyses.cost_table());
    if !args.json {
        say(analyses.cost_table().text());
    }

    let out = args.out.as_deref().unwrap_or(&args.run);
    let subject = Subject::new(
        folder.display().to_string(),
        step,
        device.report().to_string(),
        &study,
        &options,
    );
    let all = json!({ "subject": subject, "loss": loss, "analyses": analyses });
    for table in &tables {
        write_file(
            &out.join(TABLES),
            &format!("{}.csv", table.name),
            table.csv().as_bytes(),
        )?;
    }
    write_file(out, FILE, (all.to_string() + "\n").as_bytes())?;
    if args.json {
        say(all.to_string());
    } else {
        say(format!(
            "written    {} and {} tables in {}",
            out.join(FILE).display(),
            tables.len(),
            out.join(TABLES).display()
        ));
    }
    Ok(())
}

fn cost(analysis: &'static str, began: Instant) -> Cost {
    Cost {
        analysis,
        seconds: began.elapsed().as_secs_f64(),
        steps: None,
    }
}

/// A training step of this run on this device: the mean of a few.
fn seconds_per_step(trainer: &mut Trainer) -> Result<f64, Failure> {
    trainer.step()?;
    pollster::block_on(trainer.collect())?;
    let began = Instant::now();
    for _ in 0..TIMED_STEPS {
        trainer.step()?;
    }
    pollster::block_on(trainer.collect())?;
    Ok(began.elapsed().as_secs_f64() / f64::from(TIMED_STEPS))
}
