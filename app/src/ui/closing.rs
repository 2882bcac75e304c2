//! Closing the window: asks when something would be lost, and waits until it is saved.

use egui::{Modal, RichText, Ui, ViewportCommand};

use super::format::grouped;
use super::heard::Heard;
use crate::protocol::{Command, Event};

/// Its own state.
#[derive(Debug, Default)]
pub(super) struct Closing {
    asking: bool,
    /// `Quit` was sent; whether it saves.
    quitting: Option<bool>,
    /// Why the run could not be saved.
    failed: Option<String>,
}

impl Closing {
    /// Take an event in: a run that cannot be saved keeps the window open.
    pub(super) fn hear(&mut self, event: &Event) {
        if let Event::Failed { what, message, .. } = event
            && what == "quit"
            && self.quitting.take().is_some()
        {
            self.asking = true;
            self.failed = Some(message.clone());
        }
    }

    /// Look whether the window is to be closed.
    pub(super) fn show(&mut self, ui: &mut Ui, heard: &Heard, out: &mut Vec<Command>) {
        let requested = ui.input(|input| input.viewport().close_requested());
        if self.quitting.is_some() && heard.ended {
            if !requested {
                ui.ctx().send_viewport_cmd(ViewportCommand::Close);
            }
            return;
        }
        // Asked a second time while it is being saved: the person means it.
        if requested && self.quitting.is_none() {
            ui.ctx().send_viewport_cmd(ViewportCommand::CancelClose);
            if heard.is_unsaved() {
                self.asking = true;
            } else {
                self.quit(false, out);
            }
        }
        if self.asking {
            self.ask(ui, heard, out);
        } else if let Some(save) = self.quitting {
            Modal::new(egui::Id::unique("quitting")).show(ui.ctx(), |ui| {
                ui.label(if save { "Saving …" } else { "Closing …" });
            });
        }
    }

    fn quit(&mut self, save: bool, out: &mut Vec<Command>) {
        self.quitting = Some(save);
        (self.asking, self.failed) = (false, None);
        out.push(Command::Quit { save });
    }

    fn ask(&mut self, ui: &mut Ui, heard: &Heard, out: &mut Vec<Command>) {
        let mut choice = None;
        let mut cancel = false;
        let modal = Modal::new(egui::Id::unique("close window")).show(ui.ctx(), |ui| {
            ui.set_width(ui.ctx().content_rect().width().min(400.0) - 40.0);
            let save = match &self.failed {
                None => {
                    ui.heading("Save the run before closing?");
                    "Save and close"
                }
                Some(message) => {
                    ui.heading("The run could not be saved");
                    let red = ui.visuals().error_fg_color;
                    ui.label(RichText::new(message).color(red));
                    "Try again"
                }
            };
            let last = match &heard.saved {
                Some((step, _)) => format!("The last checkpoint is of step {}.", grouped(*step)),
                None => "There is no checkpoint of this run yet.".to_owned(),
            };
            ui.label(format!(
                "The model has learnt {} steps. {last}",
                grouped(heard.step)
            ));
            ui.horizontal(|ui| {
                if ui.button(save).clicked() {
                    choice = Some(true);
                }
                if ui.button("Close without saving").clicked() {
                    choice = Some(false);
                }
                cancel = ui.button("Cancel").clicked();
            });
        });
        if cancel || modal.should_close() {
            (self.asking, self.failed) = (false, None);
        }
        if let Some(save) = choice {
            self.quit(save, out);
        }
    }
}
