//! The command line. Only this module prints and decides how the process ends.

mod analyze;
mod bench;
mod compare;
mod convert;
mod dialogs;
mod doctor;
mod eval;
mod frame_times;
mod inspect;
mod list;
mod report;
mod sample;
mod shelf;
mod sweep;
mod train;
mod trained;
mod ui;
mod verify;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use braid_engine::Error;
use braid_engine::device::{AdapterKind, Device, DeviceChoice, DeviceOptions, Precision};
use clap::{Args, Parser, Subcommand};

use crate::heat_map::Paint;
use crate::run_dir::read_text;

/// The thing asked about failed: a case, an adapter.
const FAILED: u8 = 1;
/// Bad usage, configuration or file.
const USAGE: u8 = 2;
/// The device failed, or there is none.
const DEVICE: u8 = 3;
/// The training diverged.
const DIVERGED: u8 = 4;
/// Stopped by the user, and saved.
const INTERRUPTED: u8 = 130;

/// Why a command did not succeed. An empty message: everything has been said.
#[derive(Debug)]
struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    fn new(code: u8, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }

    fn silent(code: u8) -> Self {
        Self::new(code, "")
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match error {
            Error::Config { .. } | Error::File(_) | Error::Memory { .. } => USAGE,
            Error::Device(_) | Error::Gpu { .. } | Error::DeviceLost(_) => DEVICE,
            _ => FAILED,
        };
        Self::new(code, error.to_string())
    }
}

type Outcome = Result<(), Failure>;

/// Train transformers whose residual path is routed, on any GPU or on the CPU, and see the routing.
#[derive(Debug, Parser)]
#[command(
    name = "braid",
    version,
    after_help = "Example: braid train\n  trains a small model on a built-in task and shows how it routes"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Train a model
    Train(train::TrainArgs),
    /// Validation loss of a run's checkpoint, over the whole validation part
    Eval(eval::EvalArgs),
    /// What a run's model reads, what its states are like, and what each is worth
    Analyze(analyze::AnalyzeArgs),
    /// Train several configurations with the same seeds and data, and compare them
    Compare(compare::CompareArgs),
    /// Train the variants of a sweep file, here or as commands for a scheduler, and compare them
    Sweep(sweep::SweepArgs),
    /// Make a trained standard model the start of another mechanism's
    Convert(convert::ConvertArgs),
    /// Write a page about runs or sweeps: one HTML file with its figures, for a browser or a printer
    Report(report::ReportArgs),
    /// Let a run's model continue a text
    Sample(sample::SampleArgs),
    /// Configuration, step and parameters of a checkpoint
    Inspect(inspect::InspectArgs),
    /// What can compute here, and what is missing
    Doctor(doctor::DoctorArgs),
    /// The residual mechanisms and feed-forward sublayers there are
    List(list::ListArgs),
    /// Open the window: set up, train and watch
    Ui(ui::UiArgs),
    /// Compare a device with golden cases
    Verify(verify::VerifyArgs),
    /// How fast this machine trains, and how near to its limits
    Bench(bench::BenchArgs),
}

/// What to train, or to ask about.
#[derive(Clone, Debug, Args)]
struct ConfigArgs {
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Change one setting, such as model.layers=6; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
}

impl ConfigArgs {
    /// The text of the file; empty without one.
    fn text(&self) -> Result<String, Failure> {
        Ok(self
            .config
            .as_deref()
            .map(read_text)
            .transpose()?
            .unwrap_or_default())
    }
}

/// Where to compute.
#[derive(Clone, Debug, Args)]
struct DeviceArgs {
    /// auto (a hardware GPU, else the CPU), cpu, gpu, or a part of an adapter's name
    #[arg(long, default_value = "auto", value_name = "DEVICE")]
    device: String,
    /// Ask a GPU for its own limits of memory per tensor instead of those that every browser grants
    #[arg(long)]
    raise_limits: bool,
}

impl DeviceArgs {
    fn choice(&self) -> Result<DeviceChoice, Failure> {
        Ok(self.device.parse::<DeviceChoice>()?)
    }

    /// Open it. Devices that use the machine's memory are limited to what is free.
    fn open(&self, precision: Precision) -> Result<(Device, String), Failure> {
        self.open_with(precision, false)
    }

    /// As [`DeviceArgs::open`], with `timestamps` where the adapter has them.
    fn open_with(
        &self,
        precision: Precision,
        timestamps: bool,
    ) -> Result<(Device, String), Failure> {
        let options = DeviceOptions {
            memory: None,
            raise_limits: self.raise_limits,
            timestamps,
            precision,
        };
        let choice = self.choice()?;
        let device = pollster::block_on(Device::open(&choice, &options))?;
        let limited = DeviceOptions {
            memory: crate::desk::free_memory(),
            ..options
        };
        let why = device.why().to_owned();
        let device = match device.report().kind {
            AdapterKind::Host => Device::cpu(&limited),
            AdapterKind::Software => pollster::block_on(Device::open(&choice, &limited))?,
            _ => device,
        };
        Ok((device, why))
    }
}

/// Print to the standard output. A reader that has gone away is no failure.
fn say(text: impl AsRef<str>) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{}", text.as_ref()).and_then(|()| out.flush());
}

/// Print without a line end.
fn say_part(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}

/// Something to know, on the standard error.
fn notice(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr(), "note: {}", text.as_ref());
}

/// What the standard output can show.
fn paint() -> Paint {
    let set = |name: &str| std::env::var(name).is_ok_and(|value| !value.is_empty());
    let term = std::env::var("TERM").unwrap_or_default();
    if !std::io::stdout().is_terminal() || set("NO_COLOR") || term == "dumb" {
        return Paint::Shades;
    }
    let colours = std::env::var("COLORTERM").unwrap_or_default();
    // Windows Terminal has 24-bit colours and says so in a variable of its own.
    if colours == "truecolor" || colours == "24bit" || set("WT_SESSION") {
        Paint::TrueColour
    } else {
        Paint::Colours256
    }
}

/// Run the program.
#[must_use]
pub fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Train(args) => train::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Analyze(args) => analyze::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Sweep(args) => sweep::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Sample(args) => sample::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::List(args) => list::run(&args),
        Command::Ui(args) => ui::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Bench(args) => bench::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { code, message }) => {
            if !message.is_empty() {
                let _ = writeln!(std::io::stderr(), "error: {message}");
            }
            ExitCode::from(code)
        }
    }
}
