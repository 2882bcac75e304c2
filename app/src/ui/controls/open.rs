//! Opening a run: a look inside before it replaces anything.

use egui::{Grid, Modal, RichText, ScrollArea, Ui};

use crate::form::{difference, values};
use crate::protocol::{Command, Peek};
use crate::ui::format::{bytes, grouped};
use crate::ui::heard::Heard;
use crate::ui::host::{Answer, Purpose};
use crate::ui::view::View;

/// The folder that is looked into.
#[derive(Debug, Default)]
pub(super) struct Open {
    folder: Option<String>,
    failed: Option<String>,
}

impl Open {
    pub(super) fn show(
        &mut self,
        ui: &mut Ui,
        heard: &Heard,
        view: &mut View,
        out: &mut Vec<Command>,
    ) {
        match view.dialogs.take(Purpose::OpenRun) {
            Some(Answer::Folder(folder)) => {
                self.failed = None;
                out.push(Command::Peek {
                    folder: folder.clone(),
                });
                self.folder = Some(folder);
            }
            Some(Answer::Failed(message)) => self.failed = Some(message),
            _ => {}
        }
        let Some(folder) = &self.folder else { return };
        // Without an answer the banner says why.
        let Some(peek) = heard.peek.as_ref().filter(|peek| peek.folder == *folder) else {
            return;
        };
        let mut done = false;
        let modal = Modal::new(egui::Id::unique("open run")).show(ui.ctx(), |ui| {
            ui.set_width(ui.ctx().content_rect().width().min(480.0) - 40.0);
            ui.heading("Open this run?");
            facts(ui, peek);
            compare(ui, peek, heard, view);
            if let Some(run) = &heard.run {
                ui.label(format!(
                    "The run that is loaded, {}, is saved at step {} and closed first.",
                    run.name,
                    grouped(heard.step)
                ));
            }
            ui.horizontal(|ui| {
                let can = peek.last.is_some();
                let open = ui.add_enabled(can, egui::Button::new("Open"));
                let why = "This folder has no checkpoint to go on from";
                if open.on_disabled_hover_text(why).clicked() {
                    out.push(Command::Open {
                        folder: peek.folder.clone(),
                        device: view.draft.device.clone(),
                    });
                    done = true;
                }
                done |= ui.button("Cancel").clicked();
            });
        });
        if done || modal.should_close() {
            self.folder = None;
        }
    }
}

fn facts(ui: &mut Ui, peek: &Peek) {
    ui.add(egui::Label::new(RichText::new(&peek.folder).monospace().small()).wrap());
    let none = || "none".to_owned();
    let rows = [
        (
            "last checkpoint",
            peek.last
                .map_or_else(none, |step| format!("step {}", grouped(step))),
        ),
        (
            "best validation loss",
            peek.best.map_or_else(none, |(loss, step)| {
                format!("{loss:.3} nats at step {}", grouped(step))
            }),
        ),
        (
            "vocabulary",
            format!("{} tokens", grouped(u64::from(peek.vocab))),
        ),
        ("parameters", grouped(peek.parameters)),
        ("size on disk", bytes(peek.bytes)),
    ];
    Grid::new("peek")
        .num_columns(2)
        .striped(true)
        .show(ui, |ui| {
            for (name, value) in rows {
                ui.weak(name);
                ui.label(value);
                ui.end_row();
            }
        });
}

fn compare(ui: &mut Ui, peek: &Peek, heard: &Heard, view: &View) {
    let (what, own) = match &heard.run {
        Some(run) => ("the run that is loaded", values(&run.toml)),
        None => {
            let checked = heard
                .checked
                .as_ref()
                .filter(|_| view.draft.is_answered(heard));
            let own = checked.map_or_else(Vec::new, |checked| checked.values.clone());
            ("the configuration that is being edited", own)
        }
    };
    if own.is_empty() {
        return;
    }
    let all = difference(&own, &values(&peek.toml));
    if all.is_empty() {
        ui.label(format!("Its configuration is the same as {what}."));
        return;
    }
    ui.label(format!("It differs from {what}:"));
    ScrollArea::vertical().max_height(160.0).show(ui, |ui| {
        Grid::new("peek difference")
            .num_columns(3)
            .striped(true)
            .show(ui, |ui| {
                for entry in all {
                    let shown = |value: Option<String>| {
                        let value = value.as_deref().unwrap_or("none");
                        value.trim_matches('"').to_owned()
                    };
                    ui.label(RichText::new(&entry.key).monospace().small());
                    ui.label(shown(entry.left));
                    ui.label(format!("→ {}", shown(entry.right)));
                    ui.end_row();
                }
            });
    });
}
