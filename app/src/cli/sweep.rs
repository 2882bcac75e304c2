//! `braid sweep`, and what `braid compare` shares with it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use braid_engine::device::DeviceChoice;
use clap::{Args, Subcommand};

use super::{FAILED, Failure, INTERRUPTED, Outcome, notice, say};
use crate::report::{duration, grouped};
use crate::sweep::gather::{Gathered, gather};
use crate::sweep::jobs::{End, Event, Job, carry_out};
use crate::sweep::outcome::{Progress, progress_of};
use crate::sweep::plan::PlanFile;
use crate::sweep::summary::Summary;
use crate::sweep::{Changes, Planned, Seeds, Sweep, command, file};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  braid sweep small.toml --jobs 2
  braid sweep small.toml --commands | parallel -j 4
  braid sweep collect sweeps/small other-machine/sweeps/small

Run it again after a stop: finished runs stay, half-trained ones go on from their last checkpoint.
docs/sweeps.md describes the file and every figure."
)]
pub(super) struct SweepArgs {
    #[command(subcommand)]
    other: Option<Other>,
    /// Sweep file (TOML)
    #[arg(value_name = "FILE", required = true)]
    file: Option<PathBuf>,
    #[command(flatten)]
    how: HowArgs,
}

#[derive(Debug, Subcommand)]
enum Other {
    /// Put together what is in the folders of a sweep, whatever machine trained it
    Collect(CollectArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Example: braid sweep collect sweeps/small other-machine/sweeps/small")]
struct CollectArgs {
    /// Folders of sweeps: they hold runs as VARIANT/seed-N
    #[arg(value_name = "FOLDER", required = true)]
    folders: Vec<PathBuf>,
    /// What the others are compared with [default: the first in sweep.json, else by name]
    #[arg(long, value_name = "VARIANT")]
    first: Option<String>,
    /// Folder to write results.json, results.csv and runs.csv to [default: the first FOLDER]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// How a sweep is carried out.
#[derive(Debug, Args)]
pub(super) struct HowArgs {
    /// How many seeds (3), which (1,2,5), or from where to where (4..6)
    #[arg(long, value_name = "SEEDS")]
    seeds: Option<Seeds>,
    /// Updates of each run
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// auto, cpu, gpu, or a part of an adapter's name
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Ask a GPU for its own limits of memory per tensor instead of those that every browser grants
    #[arg(long)]
    raise_limits: bool,
    /// Folder of the sweep [default: sweeps/<name>]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Runs side by side, each in a process of its own
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: u16,
    /// Train nothing; print one command for each run that is not finished, for a scheduler
    #[arg(long)]
    commands: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

impl HowArgs {
    pub(super) fn changes(&self) -> Changes {
        Changes {
            seeds: self.seeds.clone(),
            steps: self.steps,
            device: self.device.clone(),
            out: self.out.clone(),
        }
    }
}

pub(super) fn run(args: &SweepArgs) -> Outcome {
    match (&args.other, &args.file) {
        (Some(Other::Collect(collect)), _) => {
            let gathered = gather(&collect.folders, None, collect.first.as_deref())?;
            let out = collect.out.as_ref().or(collect.folders.first());
            conclude(&gathered, out, collect.json)
        }
        (None, Some(path)) => train(&file::read(path, args.how.changes())?, &args.how),
        // clap asks for one of them.
        (None, None) => Ok(()),
    }
}

/// Train what is not finished, and show what came out.
pub(super) fn train(sweep: &Sweep, how: &HowArgs) -> Outcome {
    sweep.device.parse::<DeviceChoice>()?;
    // Everything is looked at before anything is trained.
    let mut runs = Vec::new();
    for run in sweep.runs() {
        let progress = progress_of(&run)?;
        runs.push((run, progress));
    }
    sweep.unlike().iter().for_each(notice);
    let plan = PlanFile::of(sweep);
    plan.write(&sweep.out)?;
    let done =
        |progress: &Progress| matches!(progress, Progress::Finished(_) | Progress::Diverged(_));
    let all = runs.len();
    let left: Vec<(Planned, Progress)> = runs
        .into_iter()
        .filter(|(_, progress)| !done(progress))
        .collect();
    let arguments = |run: &Planned| command::arguments(sweep, run, how.raise_limits);
    if how.commands {
        left.iter()
            .for_each(|(run, _)| say(command::line(&arguments(run))));
        notice(format!(
            "{} of {all} runs are finished; when the others are, put them together with\n  braid sweep collect {}",
            all - left.len(),
            sweep.out.display()
        ));
        return Ok(());
    }
    let say = |text: String| {
        if !how.json {
            say(text);
        }
    };
    say(format!(
        "sweep      {} variants, {} seeds: {all} runs, {} of them finished",
        sweep.variants.len(),
        sweep.seeds.list().len(),
        all - left.len()
    ));
    say(format!("folder     {}\n", sweep.out.display()));
    let jobs: Vec<Job> = left
        .iter()
        .map(|(run, _)| Job {
            label: run.label(),
            folder: run.folder.clone(),
            arguments: arguments(run),
            log: run.folder.with_file_name(format!("seed-{}.log", run.seed)),
        })
        .collect();
    let ended = carry_out_all(sweep, &left, &jobs, usize::from(how.jobs), &say)?;
    let gathered = gather(std::slice::from_ref(&sweep.out), Some(&plan), None)?;
    let interrupted = STOP.load(Ordering::SeqCst);
    conclude(&gathered, Some(&sweep.out), how.json)?;
    if interrupted {
        notice("stopped, and saved; the same command goes on");
        return Err(Failure::silent(INTERRUPTED));
    }
    if ended.is_empty() {
        return Ok(());
    }
    Err(Failure::new(FAILED, ended.join("\n")))
}

/// Ctrl-C was pressed.
static STOP: AtomicBool = AtomicBool::new(false);

/// Train; returns a sentence for each run that failed.
fn carry_out_all(
    sweep: &Sweep,
    left: &[(Planned, Progress)],
    jobs: &[Job],
    at_once: usize,
    say: &dyn Fn(String),
) -> Result<Vec<String>, Failure> {
    let mut sentences = Vec::new();
    if jobs.is_empty() {
        return Ok(sentences);
    }
    let pressed = || {
        if STOP.swap(true, Ordering::SeqCst) {
            std::process::exit(INTERRUPTED.into());
        }
        notice("the runs finish their steps and save; press Ctrl-C again to stop at once");
    };
    if let Err(error) = ctrlc::set_handler(pressed) {
        notice(format!("Ctrl-C will not save: {error}"));
    }
    let program = std::env::current_exe().map_err(|error| {
        Failure::new(
            FAILED,
            format!("this program cannot find its own file: {error}"),
        )
    })?;
    let width = jobs
        .iter()
        .map(|job| job.label.chars().count())
        .max()
        .unwrap_or(0);
    let run_of = |job: &Job| left.iter().find(|(run, _)| run.folder == job.folder);
    let mut number = 0;
    carry_out(&program, jobs, at_once, &STOP, &mut |event| match event {
        Event::Began(job) => {
            number += 1;
            let from = match run_of(job) {
                Some((_, Progress::Part(step))) => format!(", from step {}", grouped(*step)),
                _ => String::new(),
            };
            say(format!(
                "{number:>4} of {}  {:<width$}  begins{from}",
                jobs.len(),
                job.label
            ));
        }
        Event::Ended(job, end, seconds) => {
            let words = match end {
                End::Trained => match run_of(job).map(|(run, _)| progress_of(run)) {
                    Some(Ok(Progress::Finished(outcome))) => {
                        format!(
                            "val loss {:.4}, in {}",
                            outcome.val_loss,
                            duration(*seconds)
                        )
                    }
                    Some(Ok(Progress::Diverged(step))) => {
                        format!("diverged at step {}; it counts as ended", grouped(step))
                    }
                    Some(Err(error)) => error.to_string(),
                    _ => "ended before its last step".into(),
                },
                End::Stopped => "stopped, and saved".into(),
                End::Elsewhere => "is being trained by another process, and left to it".into(),
                End::Failed(why) => {
                    sentences.push(format!("{}: {why}", job.label));
                    why.clone()
                }
            };
            let place = format!("{:>4}    {}", "", " ".repeat(jobs.len().to_string().len()));
            say(format!("{place}  {:<width$}  {words}", job.label));
        }
    })?;
    if !sentences.is_empty() {
        notice(format!(
            "the same command tries again: finished runs of {} stay",
            sweep.out.display()
        ));
    }
    Ok(sentences)
}

/// Show the table, and write it.
fn conclude(gathered: &Gathered, out: Option<&PathBuf>, json: bool) -> Outcome {
    let summary = Summary::of(gathered);
    gathered.notices.iter().for_each(notice);
    if !summary.unfinished.is_empty() {
        let words: Vec<String> = summary.unfinished.iter().map(|run| run.words()).collect();
        notice(format!("not in the table: {}", words.join("; ")));
    }
    if let Some(out) = out {
        summary.write(out)?;
    }
    if json {
        say(summary.json());
        return Ok(());
    }
    say(format!("\n{}", summary.text()));
    if let Some(out) = out {
        say(format!(
            "written    results.json, results.csv and runs.csv in {}",
            out.display()
        ));
    }
    Ok(())
}
