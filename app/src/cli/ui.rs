//! `braid ui`

use clap::Args;
use eframe::egui;

use super::{Failure, Outcome, USAGE};
use crate::desk::Desk;
use crate::ui::Window;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  braid ui
  braid train --ui --set residual.kind=delta")]
pub(super) struct UiArgs {}

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

pub(super) fn run(_: &UiArgs) -> Outcome {
    open(Window::default())
}

/// Open the window; returns when it is closed.
pub(super) fn open(window: Window) -> Outcome {
    let options = eframe::NativeOptions {
        viewport: egui::ViewportBuilder::default()
            .with_title("Braid")
            .with_inner_size([1400.0, 900.0])
            .with_min_inner_size([360.0, 480.0]),
        ..Default::default()
    };
    let create: eframe::AppCreator<'_> = Box::new(move |context| {
        let wake = context.egui_ctx.clone();
        let desk = Desk::open(move || wake.request_repaint())?;
        Ok(Box::new(App { desk, window }))
    });
    eframe::run_native("braid", options, create).map_err(|error| {
        let message = format!(
            "the window cannot be opened: {error}. Without a screen, use `braid train` instead"
        );
        Failure::new(USAGE, message)
    })
}
