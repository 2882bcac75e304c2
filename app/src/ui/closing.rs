//! Closing the window: asks when something would be lost, and waits until it is saved.

use egui::{Modal, Ui, ViewportCommand};

use super::format::grouped;
use super::heard::Heard;
use crate::protocol::{Command, RunState};

/// Its own state.
#[derive(Debug, Default)]
pub(super) struct Closing {
    asking: bool,
    /// `Quit` was sent.
    quitting: bool,
}

impl Closing {
    /// Look whether the window is to be closed.
    pub(super) fn show(&mut self, ui: &mut Ui, heard: &Heard, out: &mut Vec<Command>) {
        let requested = ui.input(|input| input.viewport().close_requested());
        if self.quitting && heard.ended {
            if !requested {
                ui.ctx().send_viewport_cmd(ViewportCommand::Close);
            }
            return;
        }
        // Asked a second time while it is being saved: the person means it.
        if requested && !self.quitting {
            ui.ctx().send_viewport_cmd(ViewportCommand::CancelClose);
            let saved = heard
                .saved
                .as_ref()
                .is_some_and(|(step, _)| *step == heard.step);
            let stopped = !matches!(heard.state(), RunState::Running);
            if heard.run.is_none() || (saved && stopped) {
                self.quit(false, out);
            } else {
                self.asking = true;
            }
        }
        if self.asking {
            self.ask(ui, heard, out);
        } else if self.quitting {
            Modal::new(egui::Id::unique("quitting")).show(ui.ctx(), |ui| {
                ui.label("Saving …");
            });
        }
    }

    fn quit(&mut self, save: bool, out: &mut Vec<Command>) {
        self.quitting = true;
        self.asking = false;
        out.push(Command::Quit { save });
    }

    fn ask(&mut self, ui: &mut Ui, heard: &Heard, out: &mut Vec<Command>) {
        let mut choice = None;
        let modal = Modal::new(egui::Id::unique("close window")).show(ui.ctx(), |ui| {
            ui.set_width(ui.ctx().content_rect().width().min(400.0) - 40.0);
            ui.heading("Save the run before closing?");
            let last = match &heard.saved {
                Some((step, _)) => format!("The last checkpoint is of step {}.", grouped(*step)),
                None => "There is no checkpoint of this session yet.".to_owned(),
            };
            ui.label(format!(
                "The model has learnt {} steps. {last}",
                grouped(heard.step)
            ));
            ui.horizontal(|ui| {
                if ui.button("Save and close").clicked() {
                    choice = Some(true);
                }
                if ui.button("Close without saving").clicked() {
                    choice = Some(false);
                }
                if ui.button("Cancel").clicked() {
                    self.asking = false;
                }
            });
        });
        if modal.should_close() {
            self.asking = false;
        }
        if let Some(save) = choice {
            self.quit(save, out);
        }
    }
}
