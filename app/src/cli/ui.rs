//! `braid ui`

use std::path::{Path, PathBuf};

use clap::Args;
use eframe::egui;

use super::dialogs::Dialogs;
use super::{Failure, Outcome, USAGE};
use crate::config::RunConfig;
use crate::desk::Desk;
use crate::run_dir::{RunDir, read_text};
use crate::ui::Window;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  braid ui
  braid ui runs/20260101-120000-dar-recall
  braid train --ui --set residual.kind=delta")]
pub(super) struct UiArgs {
    /// Open this run, paused at its last checkpoint
    #[arg(value_name = "RUN", conflicts_with_all = ["config", "settings"])]
    run: Option<PathBuf>,
    /// Configuration file (TOML) to begin with
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Change one setting, such as model.layers=6; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// auto (a hardware GPU, else the CPU), cpu, gpu, or a part of an adapter's name
    #[arg(long, default_value = "auto", value_name = "DEVICE")]
    device: String,
}

/// The window and the thread behind it.
struct App {
    desk: Desk,
    window: Window,
}

impl eframe::App for App {
    fn logic(&mut self, _: &egui::Context, _: &mut eframe::Frame) {
        for event in self.desk.poll() {
            self.window.hear(event);
        }
    }

    fn ui(&mut self, ui: &mut egui::Ui, _: &mut eframe::Frame) {
        for command in self.window.show(ui) {
            self.desk.send(command);
        }
    }
}

pub(super) fn run(args: &UiArgs) -> Outcome {
    if let Some(folder) = &args.run {
        return open_run(folder, &args.device);
    }
    if args.config.is_none() && args.settings.is_empty() {
        return open(Window::default().on_device(&args.device));
    }
    let text = args.config.as_deref().map(read_text).transpose()?;
    let config = RunConfig::parse(&text.unwrap_or_default(), &args.settings)?;
    with(&config, &args.device, false)
}

/// Open the window with a run, paused at its last checkpoint.
pub(super) fn open_run(folder: &Path, device: &str) -> Outcome {
    // What is not a run is said here, not in a window.
    RunDir::open(folder)?;
    open(Window::default().with_run(&folder.to_string_lossy(), device))
}

/// Open the window with a configuration, and train it at once if `start`.
pub(super) fn with(config: &RunConfig, device: &str, start: bool) -> Outcome {
    let window = Window::default().with_draft(&config.to_toml(), device, start);
    open(window.map_err(|message| Failure::new(USAGE, message))?)
}

/// Returns when the window is closed.
fn open(window: Window) -> Outcome {
    let options = eframe::NativeOptions {
        viewport: egui::ViewportBuilder::default()
            .with_title("Braid")
            .with_inner_size([1400.0, 900.0])
            .with_min_inner_size([360.0, 480.0]),
        ..Default::default()
    };
    let create: eframe::AppCreator<'_> = Box::new(move |context| {
        let context = context.egui_ctx.clone();
        let window = window.with_host(Box::new(Dialogs::new(context.clone())));
        let desk = Desk::open(move || context.request_repaint())?;
        Ok(Box::new(App { desk, window }))
    });
    eframe::run_native("braid", options, create).map_err(|error| {
        let message =
            format!("the window cannot be opened: {error}. Without a screen, use `braid train`");
        Failure::new(USAGE, message)
    })
}
