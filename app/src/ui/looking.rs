//! A run on disk that is looked at while another program may train it: read again and again.

use egui::Ui;
use web_time::Duration;

use super::heard::Heard;
use super::theme;
use crate::protocol::Command;

/// Seconds between two readings, at least.
const EVERY: f64 = 2.0;

/// Reading takes at most about one part of so many of the time.
const SHARE: f64 = 20.0;

/// Its own state, in seconds of the window's clock.
#[derive(Debug, Default)]
pub(super) struct Looking {
    /// When it was asked for last, until the answer has come.
    asked: Option<f64>,
    /// When to ask again.
    due: Option<f64>,
}

impl Looking {
    /// An answer has come.
    pub(super) fn answered(&mut self, now: f64) {
        let took = self.asked.take().map_or(0.0, |asked| now - asked);
        self.due = Some(now + EVERY.max(SHARE * took));
    }

    /// Ask again if it is time to. Call once a frame.
    pub(super) fn tick(&mut self, ui: &Ui, heard: &Heard, out: &mut Vec<Command>) {
        let Some(run) = heard.closed.as_ref().filter(|_| heard.looking) else {
            *self = Self::default();
            return;
        };
        let now = ui.input(|input| input.time);
        let due = *self.due.get_or_insert(now + EVERY);
        if now >= due && self.asked.is_none() {
            self.asked = Some(now);
            out.push(Command::Look {
                folder: run.folder.clone(),
            });
        }
        if self.asked.is_none() {
            let wait = Duration::from_secs_f64((due - now).max(0.05));
            ui.ctx().request_repaint_after(wait);
        }
    }
}

/// What is looked at, and the way out; true when it is taken.
pub(super) fn banner(ui: &mut Ui, heard: &Heard) -> bool {
    let Some(run) = heard.closed.as_ref().filter(|_| heard.looking) else {
        return false;
    };
    let mut done = false;
    let edge = ui.visuals().widgets.noninteractive.bg_stroke.color;
    theme::notice(ui, edge, |ui| {
        ui.set_width(ui.available_width());
        ui.horizontal_wrapped(|ui| {
            ui.strong("Looking at a run on disk");
            ui.monospace(&run.folder);
            ui.label("It is read again every few seconds. Nothing here changes it.");
            done = ui.button("Stop looking").clicked();
        });
    });
    done
}
