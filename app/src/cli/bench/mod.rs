//! `braid bench`: how fast this machine is, and how near to its limits the kernels and the steps come.

mod anchors;
mod growth;
mod measure;
mod ops;
mod steps;

use braid_engine::bench::Size;
use braid_engine::bench::sizes::SIZES;
use braid_engine::device::{AdapterReport, Precision};
use braid_engine::optim::UpdateConfig;
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::{DeviceArgs, Failure, Outcome, USAGE, notice, say};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  braid bench                              ops and training steps of the small size, on what `auto` takes
  braid bench ops --device gpu --size large
  braid bench steps growth --rounds 15 --json

Everything is measured in turns; a figure is the median over rounds of a ratio within a round, behind it in brackets the
range that holds the true median in 95 of 100 cases. Times are true for this machine and its load; ratios travel better.")]
pub(super) struct BenchArgs {
    /// What to measure; ops and steps if nothing is named
    #[arg(value_name = "PART")]
    parts: Vec<Part>,
    #[command(flatten)]
    device: DeviceArgs,
    /// Size of the models: small, medium or large
    #[arg(long, value_name = "SIZE", default_value = "small")]
    size: String,
    /// Rounds; 9 or more give a range that leaves out strays
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,
    /// Only mechanisms whose name has this in it (steps), or only ops (ops)
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// How fast the device copies and computes
    Anchors,
    /// Every op, forward and backward, against its bound
    Ops,
    /// Training steps of the mechanisms, against `standard`; their kernels, counts and memory
    Steps,
    /// Training steps over layers, width and context
    Growth,
}

/// Everything that was measured.
#[derive(Debug, Default, Serialize)]
struct Report {
    version: &'static str,
    device: Option<AdapterReport>,
    /// Mean number of running processes over a minute, before and after.
    load: [Option<f64>; 2],
    rounds: usize,
    size: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    anchors: Option<anchors::Rates>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ops: Vec<ops::Row>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<steps::Row>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    growth: Vec<growth::Row>,
}

/// The optimiser of everything here: AdamW with clipping.
const UPDATE: UpdateConfig = UpdateConfig {
    beta1: 0.9,
    beta2: 0.95,
    eps: 1e-8,
    weight_decay: 0.1,
    clip: 1.0,
    routing_lr_mult: 1.0,
    muon: None,
};

/// What all parts need.
struct Bench<'a> {
    device: &'a braid_engine::device::Device,
    size: Size,
    rounds: usize,
    only: Option<&'a str>,
}

impl Bench<'_> {
    /// Whether `--only` lets it through.
    fn wants(&self, name: &str) -> bool {
        self.only.is_none_or(|part| name.contains(part))
    }
}

/// Mean number of running processes over the last minute, if the system counts them.
fn load() -> Option<f64> {
    Some(sysinfo::System::load_average().ok()?.one)
}

fn load_text(load: Option<f64>) -> String {
    load.map_or("unknown".into(), |load| format!("{load:.1}"))
}

pub(super) fn run(args: &BenchArgs) -> Outcome {
    let Some(size) = SIZES.into_iter().find(|size| size.name == args.size) else {
        let names = SIZES.map(|size| size.name).join(", ");
        let message = format!("there is no size `{}`; it is one of {names}", args.size);
        return Err(Failure::new(USAGE, message));
    };
    if cfg!(debug_assertions) {
        notice("this is no release build: the code of the CPU is slower than it could be");
    }
    let (device, _) = args.device.open_with(Precision::F32, true)?;
    let parts = if args.parts.is_empty() {
        &[Part::Ops, Part::Steps]
    } else {
        &args.parts[..]
    };
    let bench = Bench {
        device: &device,
        size,
        rounds: usize::try_from(args.rounds).unwrap_or(usize::MAX),
        only: args.only.as_deref(),
    };
    let mut report = Report {
        version: env!("CARGO_PKG_VERSION"),
        device: Some(device.report().clone()),
        load: [load(); 2],
        rounds: bench.rounds,
        size: size.name,
        ..Report::default()
    };
    let tell = |lines: Vec<String>| {
        if !args.json {
            lines.into_iter().for_each(say);
        }
    };
    tell(vec![
        format!("braid {} on {}", report.version, device.report()),
        format!(
            "{} rounds, load {}; size {}",
            bench.rounds,
            load_text(report.load[0]),
            about(&size)
        ),
    ]);
    for part in parts {
        match part {
            Part::Anchors => {
                let rates = anchors::measure(&bench)?;
                tell(rates.lines());
                report.anchors = Some(rates);
            }
            Part::Ops => {
                report.ops = ops::measure(&bench)?;
                tell(ops::lines(&report.ops));
            }
            Part::Steps => {
                report.steps = steps::measure(&bench)?;
                tell(steps::lines(&report.steps));
            }
            Part::Growth => {
                report.growth = growth::measure(&bench)?;
                tell(growth::lines(&report.growth));
            }
        }
    }
    report.load[1] = load();
    if args.json {
        say(serde_json::to_string(&report).unwrap_or_default());
    } else {
        say(format!("\nload at the end {}", load_text(report.load[1])));
    }
    Ok(())
}

/// `small: width 128, 4 layers, 4 heads, batch 12 x 64, 65 tokens in the vocabulary`
fn about(size: &Size) -> String {
    format!(
        "{}: width {}, {} layers, {} heads, batch {} x {}, {} tokens in the vocabulary",
        size.name, size.width, size.layers, size.heads, size.sequences, size.context, size.vocab
    )
}
