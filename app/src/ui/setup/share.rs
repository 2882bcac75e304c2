//! The configuration as text, file and link.

use egui::{Modal, RichText, TextEdit, Ui};

use crate::form::Edits;
use crate::ui::drafting::Drafting;
use crate::ui::host::{Answer, Purpose, Wish};
use crate::ui::view::View;

/// Its own state.
#[derive(Debug, Default)]
pub(super) struct Share {
    /// What is being pasted.
    paste: Option<String>,
    /// What came of the last thing done.
    said: Option<String>,
}

/// Take a text in: a link, or TOML. Returns a remark.
fn read(text: &str, draft: &mut Drafting) -> Result<String, String> {
    let (edits, version) = if Edits::is_link(text) {
        Edits::from_link(text)?
    } else {
        (Edits::from_toml(text)?, None)
    };
    draft.edits = edits;
    Ok(match version {
        Some(version) => format!(
            "Taken over. The link was written by Braid {version}, this is {}: a run of it may differ.",
            env!("CARGO_PKG_VERSION")
        ),
        None => "Taken over.".into(),
    })
}

impl Share {
    pub(super) fn show(&mut self, ui: &mut Ui, view: &mut View) {
        if let Some(answer) = view.dialogs.take(Purpose::Config) {
            self.said = Some(match answer {
                Answer::File { bytes, .. } => match String::from_utf8(bytes) {
                    Ok(text) => read(&text, &mut view.draft).unwrap_or_else(|error| error),
                    Err(_) => "This file is not a text; a configuration is TOML.".into(),
                },
                Answer::Failed(message) => message,
                Answer::Files(_) | Answer::Folder(_) | Answer::Saved(_) => return,
            });
        }
        ui.horizontal_wrapped(|ui| {
            let link = ui
                .button("Copy link")
                .on_hover_text("A link that carries the whole configuration, seed included");
            if link.clicked() {
                ui.ctx()
                    .copy_text(view.draft.edits.link(view.dialogs.link_base()));
                self.said = Some("The link is on the clipboard.".into());
            }
            if ui
                .button("Copy text")
                .on_hover_text("The configuration as TOML")
                .clicked()
            {
                ui.ctx().copy_text(view.draft.edits.to_toml());
                self.said = Some("The configuration is on the clipboard.".into());
            }
            if ui
                .button("Paste…")
                .on_hover_text("Read a link or a TOML text")
                .clicked()
            {
                self.paste = Some(String::new());
            }
            if ui
                .button("Open…")
                .on_hover_text("Read a configuration file")
                .accessible_name("open a configuration")
                .clicked()
            {
                view.dialogs.ask(Purpose::Config, Wish::OpenFile);
            }
            if ui
                .button("Save…")
                .on_hover_text("Write a configuration file")
                .accessible_name("save this configuration")
                .clicked()
            {
                let text = view.draft.edits.to_toml();
                view.dialogs.save_text("braid.toml", &text);
            }
        });
        if let Some(said) = &self.said {
            ui.label(RichText::new(said).small().weak());
        }
        self.changes(ui, view);
        self.pasting(ui, view);
    }

    fn changes(&self, ui: &mut Ui, view: &mut View) {
        let changes: Vec<(String, String)> = view
            .draft
            .edits
            .changes()
            .map(|(key, value)| (key.to_owned(), value.to_string()))
            .collect();
        let title = match changes.len() {
            0 => "Nothing differs from the defaults".to_owned(),
            1 => "1 value differs from its default".to_owned(),
            n => format!("{n} values differ from their defaults"),
        };
        egui::CollapsingHeader::new(title)
            .id_salt("changes")
            .show(ui, |ui| {
                egui::Grid::new("changes")
                    .num_columns(3)
                    .striped(true)
                    .show(ui, |ui| {
                        for (key, value) in changes {
                            let field = view.draft.edits.field(&key);
                            ui.add(
                                egui::Label::new(RichText::new(&key).monospace().small())
                                    .truncate(),
                            );
                            ui.label(RichText::new(value.trim_matches('"')).small());
                            let was = field.map_or("unknown".into(), |field| field.default_words());
                            ui.label(RichText::new(format!("default {was}")).weak().small());
                            ui.end_row();
                        }
                    });
            });
    }

    fn pasting(&mut self, ui: &mut Ui, view: &mut View) {
        let Some(text) = &mut self.paste else { return };
        let mut done = false;
        let response = Modal::new(egui::Id::unique("paste")).show(ui.ctx(), |ui| {
            ui.set_width(ui.ctx().content_rect().width().min(460.0) - 40.0);
            let title = ui.heading("Read a link or a configuration");
            ui.weak("A link of Braid (it has #c= in it), or the text of a configuration file.");
            // Not a code editor: that one would keep Tab to itself.
            let edit = TextEdit::multiline(text)
                .font(egui::TextStyle::Monospace)
                .desired_rows(10)
                .desired_width(f32::INFINITY);
            egui::ScrollArea::vertical()
                .max_height(260.0)
                .show(ui, |ui| {
                    ui.add(edit).labelled_by(title.id);
                });
            if let Some(said) = &self.said {
                ui.label(said);
            }
            ui.horizontal(|ui| {
                if ui.button("Use it").clicked() {
                    let result = read(text, &mut view.draft);
                    done = result.is_ok();
                    self.said = Some(result.unwrap_or_else(|error| error));
                }
                done |= ui.button("Cancel").clicked();
            });
        });
        if done || response.should_close() {
            self.paste = None;
        }
    }
}
