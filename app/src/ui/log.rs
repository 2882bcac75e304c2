//! Panel: what happened, in sentences.

use egui::{RichText, ScrollArea, Sides, Ui};

use super::diagnostics;
use super::format::grouped;
use super::heard::{Entry, Heard, Level};
use super::theme;
use super::view::View;
use crate::protocol::Command;

/// Its own state.
#[derive(Debug, Default)]
pub(super) struct Log {}

/// The log as a text, oldest first.
#[must_use]
pub(super) fn text(entries: &[Entry]) -> String {
    let line = |entry: &Entry| {
        let level = match entry.level {
            Level::Note => "",
            Level::Error => "error: ",
        };
        format!("step {:>7}  {level}{}\n", entry.step, entry.text)
    };
    entries.iter().map(line).collect()
}

impl Log {
    /// Draw it.
    pub(super) fn show(
        &mut self,
        ui: &mut Ui,
        heard: &Heard,
        view: &mut View,
        out: &mut Vec<Command>,
    ) {
        let _ = out;
        Sides::new().show(
            ui,
            |ui| ui.strong("Log"),
            |ui| {
                let close = ui.add(theme::small(ui, "×"));
                close.widget_info(|| {
                    egui::WidgetInfo::labeled(egui::Role::Button, true, "close the log")
                });
                if close.clicked() {
                    view.log = false;
                }
                if ui.add(theme::small(ui, "Save…")).clicked() {
                    let log = text(&heard.log);
                    let log = diagnostics::text(heard, view) + "\n" + &log;
                    view.dialogs.save_text("braid-log.txt", &log);
                }
                if ui.add(theme::small(ui, "Copy")).clicked() {
                    ui.ctx().copy_text(text(&heard.log));
                }
            },
        );
        let scroll = ScrollArea::vertical()
            .auto_shrink(false)
            .stick_to_bottom(true);
        let height = ui.text_style_height(&egui::TextStyle::Body);
        if heard.log.is_empty() {
            ui.weak("Nothing has happened yet. Checkpoints, notices and errors are written here.");
            return;
        }
        scroll.show_rows(ui, height, heard.log.len(), |ui, rows| {
            for entry in &heard.log[rows] {
                ui.horizontal(|ui| {
                    let step = format!("step {:>7}", grouped(entry.step));
                    ui.label(RichText::new(step).monospace().weak());
                    let text = match entry.level {
                        Level::Note => RichText::new(&entry.text),
                        Level::Error => {
                            RichText::new(&entry.text).color(ui.visuals().error_fg_color)
                        }
                    };
                    ui.add(egui::Label::new(text).truncate())
                        .on_hover_text(&entry.text);
                });
            }
        });
    }
}
