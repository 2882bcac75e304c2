//! Configurations with a name: those that come with Braid, and those that a person keeps.

use egui::{Button, ComboBox, Key, Label, Modal, RichText, ScrollArea, TextEdit, Ui};

use crate::form::{Edits, PRESETS};
use crate::ui::theme;
use crate::ui::view::View;

/// The longest name, in characters.
const LONGEST: usize = 60;

/// Its own state.
#[derive(Debug, Default)]
pub(super) struct Presets {
    /// The list of kept ones is open.
    open: bool,
    /// The name to keep the draft under.
    name: String,
    /// A name that is taken, and is asked about.
    asking: Option<String>,
    /// What was deleted last.
    deleted: Option<(String, Edits)>,
    /// What came of the last thing done.
    said: Option<String>,
}

/// The preset that the draft is.
fn current(view: &View) -> Option<String> {
    let of = |toml: &str| Edits::from_toml(toml).ok();
    let own = |name: &&str| view.kept.preset(name) == Some(Ok(view.draft.edits.clone()));
    let kept = view.kept.names().find(own).map(str::to_owned);
    kept.or_else(|| {
        let mut presets = PRESETS.iter();
        let built_in = presets.find(|preset| of(preset.toml).as_ref() == Some(&view.draft.edits));
        built_in.map(|preset| preset.name.to_owned())
    })
}

/// Why a configuration cannot be kept under this name.
fn wrong(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("Write a name first")
    } else if name.chars().count() > LONGEST {
        Some("A name has 60 characters at most")
    } else if PRESETS.iter().any(|preset| preset.name == name) {
        Some("A preset that comes with Braid has this name: choose another one")
    } else {
        None
    }
}

impl Presets {
    /// Draw the line with the choice; and the list, if it is open.
    pub(super) fn show(&mut self, ui: &mut Ui, view: &mut View) {
        let current = current(view);
        let mut chosen = None;
        ui.horizontal(|ui| {
            let label = ui.label("Preset");
            let keep = ui.spacing().interact_size.x + 16.0;
            let combo = ComboBox::from_id_salt("preset")
                .selected_text(current.as_deref().unwrap_or("changed"))
                .truncate()
                .height(420.0)
                .width(ui.available_width() - keep - 18.0);
            let shown = combo.show_ui(ui, |ui| {
                for preset in PRESETS {
                    let here = current.as_deref() == Some(preset.name);
                    let choice = ui.selectable_label(here, preset.name);
                    if choice.on_hover_text(preset.about).clicked() {
                        chosen = Some(Edits::from_toml(preset.toml));
                    }
                }
                for (at, name) in view.kept.names().enumerate() {
                    if at == 0 {
                        ui.separator();
                        ui.label(RichText::new("yours").small().weak());
                    }
                    let here = current.as_deref() == Some(name);
                    if ui.selectable_label(here, name).clicked() {
                        chosen = view.kept.preset(name);
                    }
                }
            });
            shown.response.labelled_by(label.id);
            let keep = ui.button("Keep…");
            let keep = keep
                .on_hover_text("Keep this configuration under a name; load and delete kept ones");
            if keep.clicked() {
                self.open = true;
                self.name = current
                    .filter(|name| wrong(name).is_none())
                    .unwrap_or_default();
            }
        });
        match chosen {
            Some(Ok(edits)) => (view.draft.edits, self.said) = (edits, None),
            Some(Err(message)) => self.said = Some(message),
            None => {}
        }
        if !self.open {
            if let Some(said) = &self.said {
                let red = ui.visuals().error_fg_color;
                ui.label(RichText::new(said).color(red));
            }
            return;
        }
        let modal = Modal::new(egui::Id::unique("presets")).show(ui.ctx(), |ui| {
            ui.set_width(ui.ctx().content_rect().width().min(440.0) - 40.0);
            self.keep(ui, view);
            ui.separator();
            self.list(ui, view);
            if let Some(said) = &self.said {
                ui.label(said);
            }
            if let Some(failed) = view.kept.failed() {
                let red = ui.visuals().error_fg_color;
                ui.label(RichText::new(failed).color(red));
            }
            ui.button("Close").clicked()
        });
        if modal.inner || modal.should_close() {
            (self.open, self.asking) = (false, None);
            (self.deleted, self.said) = (None, None);
        }
    }

    /// The field for a name, and the question about one that is taken.
    fn keep(&mut self, ui: &mut Ui, view: &mut View) {
        let title = ui.heading("Keep this configuration");
        let edit = TextEdit::singleline(&mut self.name)
            .align(theme::beginning(ui))
            .hint_text("a name")
            .desired_width(f32::INFINITY);
        let edit = ui.add(edit).labelled_by(title.id);
        let enter = edit.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
        if edit.changed() {
            self.asking = None;
        }
        let name = self.name.trim().to_owned();
        let why = wrong(&name);
        if let Some(taken) = self.asking.clone() {
            ui.label(format!("\"{taken}\" is there already. Replace it?"));
            ui.horizontal(|ui| {
                if ui.button("Replace").clicked() {
                    view.kept.keep(&taken, &view.draft.edits);
                    self.said = Some(format!("\"{taken}\" was replaced."));
                    self.asking = None;
                }
                if ui.button("Leave it").clicked() {
                    self.asking = None;
                }
            });
            return;
        }
        let button = ui.add_enabled(why.is_none(), Button::new("Keep"));
        let button = button.on_disabled_hover_text(why.unwrap_or_default());
        if !(button.clicked() || enter && why.is_none()) {
            return;
        }
        if view.kept.names().any(|own| own == name) {
            self.asking = Some(name);
        } else {
            view.kept.keep(&name, &view.draft.edits);
            self.said = Some(format!("Kept as \"{name}\"."));
            self.deleted = None;
        }
    }

    fn list(&mut self, ui: &mut Ui, view: &mut View) {
        let names: Vec<String> = view.kept.names().map(str::to_owned).collect();
        if names.is_empty() {
            ui.weak("Nothing is kept yet. What is kept is the whole configuration, its seed too, but not the device.");
        }
        let (mut load, mut delete) = (None, None);
        let most = 0.4 * ui.ctx().content_rect().height();
        ScrollArea::vertical().max_height(most).show(ui, |ui| {
            for name in &names {
                let width = ui.available_width();
                egui::Sides::new().shrink_left().truncate().show(
                    ui,
                    |ui| {
                        ui.set_max_width(width);
                        ui.add(Label::new(name).truncate()).on_hover_text(name);
                    },
                    |ui| {
                        let named = |button: egui::Response, what: &str| {
                            button.widget_info(|| {
                                let text = format!("{what} {name}");
                                egui::WidgetInfo::labeled(egui::Role::Button, true, text)
                            });
                            button.clicked()
                        };
                        if named(ui.button("Delete"), "Delete") {
                            delete = Some(name.clone());
                        }
                        if named(ui.button("Load"), "Load") {
                            load = Some(name.clone());
                        }
                    },
                );
            }
        });
        if let Some(name) = load {
            match view.kept.preset(&name) {
                Some(Ok(edits)) => {
                    view.draft.edits = edits;
                    self.said = Some(format!("\"{name}\" is loaded."));
                }
                Some(Err(message)) => self.said = Some(message),
                None => {}
            }
        }
        if let Some(name) = delete {
            let edits = view.kept.preset(&name).and_then(Result::ok);
            self.deleted = edits.map(|edits| (name.clone(), edits));
            view.kept.delete(&name);
            (self.said, self.asking) = (None, None);
        }
        if let Some((name, edits)) = self.deleted.clone() {
            ui.horizontal(|ui| {
                ui.label(format!("\"{name}\" was deleted."));
                if ui.button("Undo").clicked() {
                    view.kept.keep(&name, &edits);
                    self.deleted = None;
                }
            });
        }
    }
}
