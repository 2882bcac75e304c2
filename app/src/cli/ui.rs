//! `braid ui`

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use eframe::egui;

use super::dialogs::Dialogs;
use super::frame_times::FrameTimes;
use super::{Failure, Outcome, USAGE, notice, say};
use crate::config::RunConfig;
use crate::desk::Desk;
use crate::form::{Edits, PRESETS};
use crate::protocol::RunState;
use crate::run_dir::{RunDir, read_text};
use crate::ui::Window;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  braid ui
  braid ui runs/20260101-120000-dar-recall
  braid ui 'braid://#v=0.1.0&c=W3Jlc2lkdWFsXQpraW5kID0gImRlbHRhIgo'
  braid train --ui --set residual.kind=delta")]
pub(super) struct UiArgs {
    /// Open this run, paused at its last checkpoint; or begin with the configuration of a share link
    #[arg(value_name = "RUN or LINK", conflicts_with_all = ["config", "settings"])]
    what: Option<String>,
    /// Configuration file (TOML) to begin with
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Change one setting, such as model.layers=6; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// auto (a hardware GPU, else the CPU), cpu, gpu, or a part of an adapter's name
    #[arg(long, default_value = "auto", value_name = "DEVICE")]
    device: String,
    /// Train the first preset at once, print where the time of so many frames goes, and end
    #[arg(long, value_name = "FRAMES", hide = true, conflicts_with = "what")]
    frame_times: Option<usize>,
}

/// The window and the thread behind it.
struct App {
    desk: Desk,
    window: Window,
    /// What is measured, if anything is.
    times: Option<FrameTimes>,
}

impl eframe::App for App {
    fn logic(&mut self, _: &egui::Context, _: &mut eframe::Frame) {
        for event in self.desk.poll() {
            self.window.hear(event);
        }
    }

    fn ui(&mut self, ui: &mut egui::Ui, frame: &mut eframe::Frame) {
        let began = Instant::now();
        for command in self.window.show(ui) {
            self.desk.send(command);
        }
        let trains = *self.window.heard.state() == RunState::Running;
        if let Some(times) = &mut self.times
            && trains
            && let Some(text) = times.take(began, began.elapsed(), frame.info().cpu_usage)
        {
            say(text);
            std::process::exit(0);
        }
    }
}

pub(super) fn run(args: &UiArgs) -> Outcome {
    match &args.what {
        Some(link) if link.starts_with("braid:") || Edits::is_link(link) => {
            return open(linked(link, &args.device)?);
        }
        Some(folder) => return open_run(Path::new(folder), &args.device),
        None => {}
    }
    if let Some(frames) = args.frame_times {
        let preset = PRESETS.first().map_or("", |preset| preset.toml);
        let window = Window::default().with_draft(preset, &args.device, true);
        let window = window.map_err(|message| Failure::new(USAGE, message))?;
        return measured(window, Some(FrameTimes::new(frames)));
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

/// A window that begins with the configuration of a link. What cannot run in it, the window says.
fn linked(link: &str, device: &str) -> Result<Window, Failure> {
    let bad =
        |message: String| Failure::new(USAGE, format!("this link cannot be opened: {message}"));
    let (edits, version) = Edits::from_link(link).map_err(bad)?;
    if let Some(version) = version {
        notice(format!(
            "the link was written by Braid {version}, this is {}: a run of it may differ",
            env!("CARGO_PKG_VERSION")
        ));
    }
    Window::default()
        .with_draft(&edits.to_toml(), device, false)
        .map_err(bad)
}

/// Open the window with a configuration, and train it at once if `start`.
pub(super) fn with(config: &RunConfig, device: &str, start: bool) -> Outcome {
    let window = Window::default().with_draft(&config.to_toml(), device, start);
    open(window.map_err(|message| Failure::new(USAGE, message))?)
}

/// Returns when the window is closed.
fn open(window: Window) -> Outcome {
    measured(window, None)
}

fn measured(window: Window, times: Option<FrameTimes>) -> Outcome {
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
        Ok(Box::new(App {
            desk,
            window,
            times,
        }))
    });
    eframe::run_native("braid", options, create).map_err(|error| {
        let message =
            format!("the window cannot be opened: {error}. Without a screen, use `braid train`");
        Failure::new(USAGE, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_opens_with_its_configuration() {
        let mut edits = Edits::default();
        edits.set("train.seed", 77.into());
        edits.set("residual.kind", "delta".into());
        let window = linked(&edits.link("braid://"), "cpu").expect("a window");
        assert_eq!(window.view.draft.edits, edits);
        assert_eq!(window.view.draft.device, "cpu");
    }

    #[test]
    fn the_link_of_the_help_is_one() {
        let help = <UiArgs as clap::Args>::augment_args(clap::Command::new("ui"));
        let help = help.get_after_help().expect("examples").to_string();
        let link = help.split('\'').find(|part| part.starts_with("braid:"));
        let window = linked(link.expect("a link"), "auto").expect("a window");
        assert_eq!(window.view.draft.edits.residual(), "delta");
    }
}
