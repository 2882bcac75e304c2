//! The table of a sweep, and its files.

use std::path::Path;

use braid_engine::Result;
use braid_engine::analysis::Estimate;
use serde::Serialize;

use super::gather::{Found, Gathered};
use super::outcome::{Outcome, Progress};
use super::statistics::{Difference, Verdict, deviation, mean};
use crate::analyses::table::{Cell, Table};
use crate::report::{duration, grouped};
use crate::row;
use crate::run_dir::write_file;

/// Version of `results.json`.
const SCHEMA: u32 = 1;

/// What the figures are.
pub const EXPLANATION: &str = "val loss: mean over seeds of the held-out loss after the last update, nats; sd: standard deviation over seeds
difference: mean over the seeds that both have of val loss minus that of the first variant with the same seed
brackets: 95 % interval of that mean, Student's t over seeds; it says nothing about other data or sizes";

/// Everything that is known of a sweep. Two summaries of the same runs differ in `seconds` and `tokens_per_s` only.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    schema: u32,
    /// What the others are compared with.
    pub first: String,
    interval: &'static str,
    /// One row each, in their order.
    pub variants: Vec<Row>,
    /// Finished runs.
    pub runs: Vec<Run>,
    /// Runs that are not there, not finished, or diverged.
    pub unfinished: Vec<Unfinished>,
}

/// A variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Seeds of its finished runs.
    pub seeds: Vec<u64>,
    /// Mean held-out loss over them, nats.
    pub val_loss: Option<f64>,
    /// Its standard deviation over seeds.
    pub val_loss_sd: Option<f64>,
    /// From the first variant, seed by seed; none for the first itself.
    pub difference: Option<Difference>,
    /// What that says.
    pub verdict: Option<Verdict>,
    /// Mean over seeds; files only.
    pub bits_per_byte: Option<f64>,
    /// Mean over seeds; tasks only.
    pub accuracy: Option<f64>,
    /// Trained numbers.
    pub parameters: Option<usize>,
    /// Mean wall time of a training.
    pub seconds: Option<f64>,
    /// Mean over seeds.
    pub tokens_per_s: Option<f64>,
}

/// A finished run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// Name of its variant.
    pub variant: String,
    /// Its seed.
    pub seed: u64,
    /// What came out.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// A run without a result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unfinished {
    /// Name of its variant.
    pub variant: String,
    /// Its seed.
    pub seed: u64,
    /// `absent`, `part` or `diverged`.
    pub state: &'static str,
    /// Updates of its last checkpoint; the update that diverged.
    pub step: Option<u64>,
}

impl Unfinished {
    /// `delta, seed 2 (diverged at step 12)`
    #[must_use]
    pub fn words(&self) -> String {
        let how = match (self.state, self.step) {
            ("diverged", Some(step)) => format!("diverged at step {}", grouped(step)),
            (_, Some(step)) => format!("at step {}", grouped(step)),
            (_, None) => "not begun".into(),
        };
        format!("{}, seed {} ({how})", self.variant, self.seed)
    }
}

fn unfinished(run: &Found) -> Option<Unfinished> {
    let (state, step) = match run.progress {
        Progress::Absent => ("absent", None),
        Progress::Part(step) => ("part", Some(step)),
        Progress::Diverged(step) => ("diverged", Some(step)),
        Progress::Finished(_) => return None,
    };
    Some(Unfinished {
        variant: run.variant.clone(),
        seed: run.seed,
        state,
        step,
    })
}

impl Summary {
    /// Of what was gathered.
    #[must_use]
    pub fn of(gathered: &Gathered) -> Self {
        let finished = gathered.runs.iter().filter_map(|run| match &run.progress {
            Progress::Finished(outcome) => Some(Run {
                variant: run.variant.clone(),
                seed: run.seed,
                outcome: outcome.clone(),
            }),
            _ => None,
        });
        let runs: Vec<Run> = finished.collect();
        let first = gathered.variants.first().cloned().unwrap_or_default();
        let variants = gathered
            .variants
            .iter()
            .map(|name| row(name, &first, &runs));
        Self {
            schema: SCHEMA,
            variants: variants.collect(),
            first,
            interval: "95 %, paired, Student's t over seeds",
            unfinished: gathered.runs.iter().filter_map(unfinished).collect(),
            runs,
        }
    }

    /// The table for a terminal, with what it means.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}{EXPLANATION}\n", self.table().text())
    }

    /// The table for people.
    #[must_use]
    pub fn table(&self) -> Table {
        let rows = || self.variants.iter();
        let (bits, answers) = (
            rows().any(|row| row.bits_per_byte.is_some()),
            rows().any(|row| row.accuracy.is_some()),
        );
        let mut columns = vec!["variant", "seeds", "val loss", "sd", "difference", ""];
        columns.extend(bits.then_some("bits/byte"));
        columns.extend(answers.then_some("right"));
        columns.extend(["wall time", "tokens/s", "parameters"]);
        let title = format!("differences are to {}", self.first);
        let mut table = Table::new("results", title, &columns);
        let digits = |value: Option<f64>| Cell::from(value.map(|value| format!("{value:.4}")));
        for row in rows() {
            let difference = row.difference.map(|difference| {
                let mean = format!("{:+.4}", difference.mean);
                match (difference.low, difference.high) {
                    (Some(low), Some(high)) => format!("{mean} [{low:+.4}, {high:+.4}]"),
                    _ => mean,
                }
            });
            let mut cells = row![row.name.clone(), row.seeds.len()];
            cells.extend([digits(row.val_loss), digits(row.val_loss_sd)]);
            cells.extend(row![
                difference,
                row.verdict.map_or("", Verdict::words).to_owned()
            ]);
            cells.extend(bits.then(|| digits(row.bits_per_byte)));
            let share = row.accuracy.map(|share| format!("{:.1} %", 100.0 * share));
            cells.extend(answers.then(|| Cell::from(share)));
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a rate is not negative"
            )]
            let rate = row.tokens_per_s.map(|rate| grouped(rate.round() as u64));
            cells.extend(row![
                row.seconds.map(duration),
                rate,
                row.parameters.map(|count| grouped(count as u64))
            ]);
            table.rows.push(cells);
        }
        table
    }

    /// One row a variant, all figures.
    fn variants_table(&self) -> Table {
        let columns = [
            "variant",
            "seeds",
            "val_loss",
            "val_loss_sd",
            "difference+",
            "verdict",
            "bits_per_byte",
            "accuracy",
            "parameters",
            "seconds",
            "tokens_per_s",
        ];
        let mut table = Table::new("results", "", &columns);
        for row in &self.variants {
            let difference = row.difference.map(|difference| Estimate {
                value: difference.mean,
                low: difference.low.unwrap_or(f64::NAN),
                high: difference.high.unwrap_or(f64::NAN),
            });
            table.rows.push(row![
                row.name.clone(),
                row.seeds.len(),
                row.val_loss,
                row.val_loss_sd,
                difference,
                row.verdict.map(Verdict::words),
                row.bits_per_byte,
                row.accuracy,
                row.parameters,
                row.seconds,
                row.tokens_per_s
            ]);
        }
        table
    }

    /// One row a run.
    fn runs_table(&self) -> Table {
        let columns = [
            "variant",
            "seed",
            "val_loss",
            "val_tokens",
            "bits_per_byte",
            "accuracy",
            "loss",
            "steps",
            "parameters",
            "data",
            "device",
            "seconds",
            "tokens_per_s",
        ];
        let mut table = Table::new("runs", "", &columns);
        for run in &self.runs {
            let outcome = &run.outcome;
            table.rows.push(row![
                run.variant.clone(),
                run.seed.to_string(),
                outcome.val_loss,
                outcome.val_tokens.to_string(),
                outcome.bits_per_byte,
                outcome.accuracy,
                outcome.loss,
                outcome.steps.to_string(),
                outcome.parameters,
                outcome.data.clone(),
                outcome.device.clone(),
                outcome.seconds,
                outcome.tokens_per_s
            ]);
        }
        table
    }

    /// One JSON object.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("numbers, texts and lists of them are JSON")
    }

    /// Write `results.json`, `results.csv` and `runs.csv` into a folder. Readers see the old ones or the new ones.
    ///
    /// # Errors
    /// If one cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        for table in [self.variants_table(), self.runs_table()] {
            write_file(
                folder,
                &format!("{}.csv", table.name),
                table.csv().as_bytes(),
            )?;
        }
        write_file(folder, "results.json", (self.json() + "\n").as_bytes())
    }
}

/// The row of a variant.
fn row(name: &str, first: &str, runs: &[Run]) -> Row {
    let own: Vec<&Run> = runs.iter().filter(|run| run.variant == name).collect();
    let all = |figure: &dyn Fn(&Outcome) -> Option<f64>| -> Vec<f64> {
        own.iter().filter_map(|run| figure(&run.outcome)).collect()
    };
    let losses = all(&|outcome| Some(outcome.val_loss));
    let loss_of_first = |seed: u64| {
        let mut same = runs
            .iter()
            .filter(|run| run.variant == first && run.seed == seed);
        same.next().map(|run| run.outcome.val_loss)
    };
    let pairs = own
        .iter()
        .filter_map(|run| Some((run.outcome.val_loss, loss_of_first(run.seed)?)));
    let difference = (name != first)
        .then(|| Difference::of(&pairs.collect::<Vec<_>>()))
        .flatten();
    Row {
        name: name.to_owned(),
        seeds: own.iter().map(|run| run.seed).collect(),
        val_loss: mean(&losses),
        val_loss_sd: deviation(&losses),
        difference,
        verdict: difference.map(|difference| difference.verdict()),
        bits_per_byte: mean(&all(&|outcome| outcome.bits_per_byte)),
        accuracy: mean(&all(&|outcome| outcome.accuracy)),
        parameters: own.first().map(|run| run.outcome.parameters),
        seconds: mean(&all(&|outcome| Some(outcome.seconds))),
        tokens_per_s: mean(&all(&|outcome| Some(outcome.tokens_per_s))),
    }
}
