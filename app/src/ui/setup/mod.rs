//! Panel: the configuration and what follows from it.

mod derived;
mod diagram;
mod presets;
mod reference;
mod row;
mod schedule;
mod share;

use egui::{CollapsingHeader, ComboBox, Panel, RichText, ScrollArea, TextEdit, Ui};

use super::heard::Heard;
use super::host::{Answer, Purpose, Wish};
use super::theme;
use super::view::View;
use crate::form::{Field, Group, KINDS};
use crate::protocol::Command;
use presets::Presets;
use row::Row;
use share::Share;

/// Height of what follows from a configuration that can run: it is kept when it cannot.
const DERIVED_HEIGHT: f32 = 142.0;

/// A folded group opens over some passes; a field that is not drawn after so many has no row now.
const PATIENCE: u32 = 8;

/// Where the figures stand that follow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Below,
    Beside,
    After,
}

/// Its own state.
#[derive(Debug, Default)]
pub(super) struct Setup {
    search: String,
    presets: Presets,
    share: Share,
    /// Why a chosen text cannot be used.
    refused: Option<String>,
    /// For how many passes the field to go to was not found.
    sought: u32,
}

impl Setup {
    /// Draw it.
    pub(super) fn show(
        &mut self,
        ui: &mut Ui,
        heard: &Heard,
        view: &mut View,
        out: &mut Vec<Command>,
    ) {
        if let Some(answer) = view.dialogs.take(Purpose::Text) {
            self.text(answer, view);
        }
        // What follows stands below, or beside the fields where there is little height; on a phone after them.
        let size = ui.available_size();
        let place = match (size.y >= 420.0, size.x >= 520.0) {
            (true, _) => Place::Below,
            (false, true) => Place::Beside,
            (false, false) => Place::After,
        };
        let short = place == Place::Below && size.y < 640.0;
        let margin = |x, y| egui::Frame::new().inner_margin(egui::Margin::symmetric(x, y));
        match place {
            Place::Below => {
                Panel::bottom("derived").frame(margin(0, 6)).show(ui, |ui| {
                    ui.set_min_height(if short { 60.0 } else { DERIVED_HEIGHT });
                    derived::show(ui, heard, &mut view.draft, short);
                });
            }
            Place::Beside => {
                let panel = Panel::right("derived beside").frame(margin(8, 0));
                panel.exact_size(250.0).show(ui, |ui| {
                    ScrollArea::vertical()
                        .show(ui, |ui| derived::show(ui, heard, &mut view.draft, short));
                });
            }
            Place::After => {
                if view.draft.error(heard).is_some() {
                    derived::show(ui, heard, &mut view.draft, short);
                }
            }
        }
        self.presets.show(ui, view);
        if view.draft.go_to.is_some() {
            self.search.clear();
        }
        let search = TextEdit::singleline(&mut self.search)
            .align(theme::beginning(ui))
            .hint_text("Find a field …")
            .desired_width(f32::INFINITY);
        ui.add(search).accessible_name("Find a field");
        ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
            // Room for the scroll bar.
            ui.set_width(ui.available_width() - 8.0);
            if self.search.trim().is_empty() {
                self.groups(ui, heard, view, out);
            } else {
                self.found(ui, heard, view, out);
            }
            if place == Place::After && view.draft.error(heard).is_none() {
                ui.separator();
                derived::show(ui, heard, &mut view.draft, short);
            }
        });
        if view.draft.go_to.is_none() {
            self.sought = 0;
        } else if self.sought == PATIENCE {
            (view.draft.go_to, self.sought) = (None, 0);
        } else {
            self.sought += 1;
            ui.ctx().request_repaint();
        }
    }

    /// A text was chosen or dropped.
    fn text(&mut self, answer: Answer, view: &mut View) {
        match answer {
            Answer::File {
                name,
                readable,
                bytes,
            } => {
                self.refused = None;
                view.draft.text = (!readable).then(|| (name.clone(), bytes));
                view.draft.edits.set("data.file", toml::Value::String(name));
            }
            Answer::Failed(message) => self.refused = Some(message),
            Answer::Files(_) | Answer::Folder(_) | Answer::Saved(_) => {}
        }
    }

    fn groups(&mut self, ui: &mut Ui, heard: &Heard, view: &mut View, out: &mut Vec<Command>) {
        let fields = Field::all(view.draft.edits.residual(), view.draft.edits.feed_forward());
        for group in Group::ALL {
            let own: Vec<&Field> = fields.iter().filter(|field| field.group == group).collect();
            let target = view.draft.go_to.as_deref();
            let has = |fields: &[&Field]| fields.iter().any(|field| target == Some(field.key));
            let open = has(&own).then_some(true);
            let (folded, plain): (Vec<&Field>, Vec<&Field>) =
                own.into_iter().partition(|field| field.advanced);
            let open_folded = has(&folded).then_some(true);
            let header = CollapsingHeader::new(RichText::new(group.label()).strong())
                .default_open(group != Group::FeedForward && group != Group::Optimiser)
                .open(open);
            header.show_unindented(ui, |ui| {
                match group {
                    Group::Mechanism => mechanism(ui, heard, view),
                    Group::Data => self.data(ui, heard, view, out),
                    _ => {}
                }
                for field in plain {
                    if !field.key.starts_with("data.") && field.key != "residual.kind" {
                        row(heard, view, out).show(ui, field);
                    }
                }
                if group == Group::Schedule {
                    let derived = heard.checked.as_ref().and_then(|c| c.derived.as_ref());
                    let points = derived.map_or(&[][..], |derived| &derived.schedule);
                    let at = heard.run.as_ref().map(|_| heard.step as f64);
                    schedule::show(ui, points, at);
                }
                if !folded.is_empty() {
                    CollapsingHeader::new(RichText::new("more").weak())
                        .id_salt(("more", group.label()))
                        .open(open_folded)
                        .show_unindented(ui, |ui| {
                            for field in folded {
                                row(heard, view, out).show(ui, field);
                            }
                        });
                }
                ui.add_space(2.0);
            });
        }
        device(ui, heard, view);
        CollapsingHeader::new(RichText::new("Share").strong())
            .default_open(true)
            .show_unindented(ui, |ui| self.share.show(ui, view));
    }

    /// Fields whose label, key or help has the words.
    fn found(&mut self, ui: &mut Ui, heard: &Heard, view: &mut View, out: &mut Vec<Command>) {
        let words = self.search.to_lowercase();
        let fields = Field::all(view.draft.edits.residual(), view.draft.edits.feed_forward());
        let mut any = false;
        for field in &fields {
            let text = format!("{} {} {}", field.key, field.label, field.help).to_lowercase();
            if words.split_whitespace().all(|word| text.contains(word)) {
                any = true;
                row(heard, view, out).show(ui, field);
                ui.label(RichText::new(field.help).small().weak());
            }
        }
        if !any {
            ui.weak(format!(
                "No field of this mechanism is about \"{}\".",
                self.search.trim()
            ));
        }
    }

    fn data(&mut self, ui: &mut Ui, heard: &Heard, view: &mut View, out: &mut Vec<Command>) {
        let file = view.draft.edits.word("data.file").map(str::to_owned);
        ui.horizontal(|ui| {
            if ui.radio(file.is_none(), "built-in task").clicked() {
                for key in ["file", "tokenizer", "tokenizer_file", "vocab"] {
                    view.draft.edits.reset(&format!("data.{key}"));
                }
            }
            if ui.radio(file.is_some(), "your text").clicked() && file.is_none() {
                let name = view.draft.text.as_ref().map(|(name, _)| name.clone());
                let value = toml::Value::String(name.unwrap_or_default());
                view.draft.edits.set("data.file", value);
            }
        });
        let field = |view: &View, key: &str| view.draft.edits.field(key);
        match file {
            None => {
                if let Some(field) = field(view, "data.task") {
                    row(heard, view, out).show(ui, &field);
                }
                let task = view.draft.edits.value("data.task");
                let task = task.as_ref().and_then(|task| task.as_str());
                let example = crate::form::TASKS
                    .iter()
                    .find(|(name, _)| Some(*name) == task);
                if let Some((_, example)) = example {
                    ui.add(egui::Label::new(RichText::new(*example).small().weak()).wrap());
                }
            }
            Some(file) => {
                ui.horizontal(|ui| {
                    let choose = ui.button("Choose…").on_hover_text("A text to learn");
                    if view.draft.go_to.as_deref() == Some("data.file") {
                        choose.request_focus();
                        choose.scroll_to_me(Some(egui::Align::Center));
                        view.draft.go_to = None;
                    }
                    if choose.clicked() {
                        view.dialogs.ask(Purpose::Text, Wish::OpenFile);
                    }
                    let name = file.rsplit(['/', '\\']).next().unwrap_or_default();
                    if name.is_empty() {
                        ui.weak("or drop a text on the window");
                    } else {
                        ui.add(egui::Label::new(name).truncate())
                            .on_hover_text(&file);
                    }
                });
                if let Some(refused) = &self.refused {
                    let red = ui.visuals().error_fg_color;
                    ui.label(RichText::new(refused).color(red));
                }
                if let Some(field) = field(view, "data.tokenizer") {
                    row(heard, view, out).show(ui, &field);
                }
            }
        }
        // It has a meaning for BPE only; where it was set without one, this is the place to take it back.
        let edits = &view.draft.edits;
        let bpe = edits.word("data.tokenizer") == Some("bpe");
        if (bpe || edits.get("data.vocab").is_some())
            && let Some(field) = field(view, "data.vocab")
        {
            row(heard, view, out).show(ui, &field);
        }
    }
}

fn row<'a>(heard: &'a Heard, view: &'a mut View, out: &'a mut Vec<Command>) -> Row<'a> {
    // A field that is wrong is marked until the next answer.
    let error = heard
        .checked
        .as_ref()
        .and_then(|checked| checked.error.as_ref());
    Row {
        heard,
        draft: &mut view.draft,
        out,
        wrong: error.and_then(|error| error.field.as_deref()),
    }
}

fn device(ui: &mut Ui, heard: &Heard, view: &mut View) {
    ui.horizontal(|ui| {
        let label = ui.label(RichText::new("Device").strong());
        let name = |choice: &str| {
            let found = heard.devices.iter().find(|device| device.choice == choice);
            found.map_or_else(|| choice.to_owned(), |device| device.name.clone())
        };
        let current = match view.draft.device.as_str() {
            "auto" => "automatic".to_owned(),
            choice => name(choice),
        };
        let shown = ComboBox::from_id_salt("device")
            .selected_text(current)
            .truncate()
            .width(ui.available_width() - 12.0)
            .show_ui(ui, |ui| {
                let own = &mut view.draft.device;
                ui.selectable_value(own, "auto".into(), "automatic")
                    .on_hover_text(&heard.auto);
                for device in &heard.devices {
                    ui.selectable_value(own, device.choice.clone(), &device.name)
                        .on_hover_text(&device.kind);
                }
            });
        shown
            .response
            .labelled_by(label.id)
            .on_hover_text(&heard.auto);
    });
}

fn mechanism(ui: &mut Ui, heard: &Heard, view: &mut View) {
    let kind = view.draft.edits.residual().to_owned();
    let known = KINDS.iter().find(|row| row.kind == kind);
    let width = ui.available_width();
    let shown = ComboBox::from_id_salt("mechanism")
        .selected_text(known.map_or(kind.as_str(), |row| row.name))
        .truncate()
        .width(width - 12.0)
        .height(360.0)
        .show_ui(ui, |ui| {
            for row in KINDS {
                let choice = ui.selectable_label(row.kind == kind, row.name);
                if choice.on_hover_text(row.summary).clicked() {
                    let value = toml::Value::String(row.kind.into());
                    view.draft.edits.set("residual.kind", value);
                }
            }
        });
    shown.response.widget_info(|| {
        let name = known.map_or(kind.as_str(), |row| row.name);
        egui::WidgetInfo::labeled(egui::Role::ComboBox, true, format!("mechanism: {name}"))
    });
    if view.draft.go_to.as_deref() == Some("residual.kind") {
        shown.response.request_focus();
        view.draft.go_to = None;
    }
    if let Some(row) = known {
        ui.add(egui::Label::new(RichText::new(row.summary).small().weak()).wrap());
    }
    diagram::show(ui, &view.draft.edits);
    let derived = heard
        .checked
        .as_ref()
        .and_then(|checked| checked.derived.as_ref());
    let Some(about) = derived.map(|derived| &derived.about) else {
        return;
    };
    CollapsingHeader::new(RichText::new("Equations and sources").weak())
        .id_salt("equations")
        .show_unindented(ui, |ui| {
            ScrollArea::horizontal()
                .id_salt("equations")
                .show(ui, |ui| {
                    let text = RichText::new(&about.equations).monospace().small();
                    ui.add(egui::Label::new(text).extend());
                });
            reference::show(ui, &about.paper);
            ui.label(RichText::new("Where we had to choose").small().strong());
            for choice in &about.choices {
                ui.add(egui::Label::new(RichText::new(format!("· {choice}")).small()).wrap());
            }
            if about.choices.is_empty() {
                ui.label(RichText::new("Nowhere: nothing about it is open.").small());
            }
        });
}
