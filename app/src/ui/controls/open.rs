//! Opening a run: a look inside before it replaces anything.

use egui::{Grid, Modal, RichText, ScrollArea, TextEdit, Ui};

use super::last;
use crate::form::{difference, values};
use crate::protocol::{Command, KeptRun, Peek};
use crate::ui::format::{bytes, grouped};
use crate::ui::heard::{Heard, Level};
use crate::ui::host::{Answer, Purpose, Wish};
use crate::ui::theme;
use crate::ui::view::View;

/// The folder that is looked into.
#[derive(Debug, Default)]
pub(super) struct Open {
    /// As it is typed, or as a dialog gave it.
    folder: String,
    /// What was asked about, and how long the log was then: a failure is an answer too.
    asked: Option<(String, usize)>,
    /// Why a folder could not be chosen.
    failed: Option<String>,
    /// The runs that are kept were asked for since it was opened.
    listed: bool,
    /// The folder of a run that is to be deleted, if somebody says so again.
    deleting: Option<String>,
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
                self.folder = folder;
                self.look(heard, out);
            }
            Some(Answer::Files(files)) => {
                view.import(files, out);
                view.opening = false;
            }
            Some(Answer::Failed(message)) => self.failed = Some(message),
            _ => {}
        }
        if !view.opening {
            self.listed = false;
            return;
        }
        let folders = view.dialogs.has_folders();
        if !folders && !std::mem::replace(&mut self.listed, true) {
            out.push(Command::Runs);
        }
        let asked = self.asked.as_ref().map(|(folder, _)| folder.as_str());
        let peek = heard.peek.as_ref();
        let peek = peek.filter(|peek| asked == Some(peek.folder.as_str()));
        let mut done = false;
        let modal = Modal::new(egui::Id::unique("open run")).show(ui.ctx(), |ui| {
            ui.set_width(ui.ctx().content_rect().width().min(480.0) - 40.0);
            match peek {
                Some(peek) => done = inside(ui, peek, heard, view, out),
                None if folders => done = self.choose(ui, heard, view, out),
                None => done = self.choose_kept(ui, heard, view, out),
            }
        });
        if done || modal.should_close() {
            view.opening = false;
            (self.asked, self.failed, self.deleting) = (None, None, None);
        }
    }

    /// Ask what is inside.
    fn look(&mut self, heard: &Heard, out: &mut Vec<Command>) {
        let folder = self.folder.trim().to_owned();
        self.failed = None;
        out.push(Command::Peek {
            folder: folder.clone(),
        });
        self.asked = Some((folder, heard.log.len()));
    }

    /// Which folder; true when it is given up.
    fn choose(
        &mut self,
        ui: &mut Ui,
        heard: &Heard,
        view: &mut View,
        out: &mut Vec<Command>,
    ) -> bool {
        ui.heading("Open a run");
        ui.label("The folder of a run, such as runs/dar-recall:");
        let edit = TextEdit::singleline(&mut self.folder)
            .align(theme::beginning(ui))
            .hint_text("folder")
            .desired_width(f32::INFINITY);
        let edit = ui.add(edit);
        edit.widget_info(|| {
            let mut info = egui::WidgetInfo::text_edit(true, "", self.folder.as_str(), "");
            info.label = Some("Folder of the run".into());
            info
        });
        let enter = edit.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
        if let Some(message) = self.failure(heard) {
            let red = ui.visuals().error_fg_color;
            ui.label(RichText::new(message).color(red));
        }
        let mut done = false;
        ui.horizontal(|ui| {
            let some = !self.folder.trim().is_empty();
            let look = ui.add_enabled(some, egui::Button::new("Look inside"));
            let look = look.on_disabled_hover_text("Type the folder of a run, or choose it");
            if look.clicked() || (enter && some) {
                self.look(heard, out);
            }
            if ui.button("Choose a folder …").clicked() {
                view.dialogs.ask(Purpose::OpenRun, Wish::OpenFolder);
            }
            done = ui.button("Cancel").clicked();
        });
        done
    }

    /// Which of the runs that are kept, or one from outside; true when it is given up.
    fn choose_kept(
        &mut self,
        ui: &mut Ui,
        heard: &Heard,
        view: &mut View,
        out: &mut Vec<Command>,
    ) -> bool {
        ui.heading("Open a run");
        if heard.runs.is_empty() {
            ui.label("No run is kept in this browser yet.");
        } else {
            ui.label("Kept in this browser, the one that was saved last first:");
        }
        let mut folder = None;
        ScrollArea::vertical().max_height(280.0).show(ui, |ui| {
            for run in &heard.runs {
                self.kept(ui, run, heard, &mut folder, out);
            }
        });
        if let Some(folder) = folder {
            self.folder = folder;
            self.look(heard, out);
        }
        if let Some(message) = self.failure(heard) {
            let red = ui.visuals().error_fg_color;
            ui.label(RichText::new(message).color(red));
        }
        let mut done = false;
        ui.horizontal(|ui| {
            let choose = ui.button("Choose files …").on_hover_text(
                "The .zip of a run, or all of its files. A folder can be dropped on the window.",
            );
            if choose.clicked() {
                view.dialogs.ask(Purpose::OpenRun, Wish::OpenFolder);
            }
            done = ui.button("Cancel").clicked();
        });
        done
    }

    /// A line of the list.
    fn kept(
        &mut self,
        ui: &mut Ui,
        run: &KeptRun,
        heard: &Heard,
        folder: &mut Option<String>,
        out: &mut Vec<Command>,
    ) {
        ui.horizontal_wrapped(|ui| {
            let name = run.folder.rsplit('/').next().unwrap_or_default();
            let link = ui.link(name).on_hover_text("Look inside");
            if link.clicked() {
                *folder = Some(run.folder.clone());
            }
            let size = bytes(run.bytes);
            ui.label(
                RichText::new(format!("{} · {size}", last::words(run)))
                    .small()
                    .weak(),
            );
            let loaded = heard.run.as_ref();
            if loaded.is_some_and(|loaded| loaded.folder == run.folder) {
                ui.label(RichText::new("loaded").small());
            } else if self.deleting.as_deref() == Some(run.folder.as_str()) {
                if ui.small_button("Delete it for good").clicked() {
                    self.deleting = None;
                    out.push(Command::Delete {
                        folder: run.folder.clone(),
                    });
                }
                if ui.small_button("Keep it").clicked() {
                    self.deleting = None;
                }
            } else {
                let delete = ui.small_button("Delete");
                if delete.accessible_name(format!("delete {name}")).clicked() {
                    self.deleting = Some(run.folder.clone());
                }
            }
        });
    }

    /// Why the folder that was chosen or typed last cannot be looked into.
    fn failure<'a>(&'a self, heard: &'a Heard) -> Option<&'a str> {
        if self.failed.is_some() {
            return self.failed.as_deref();
        }
        let since = self.asked.as_ref()?.1.min(heard.log.len());
        let errors = heard.log[since..].iter().rev();
        errors
            .filter(|entry| entry.level == Level::Error)
            .find_map(|entry| entry.text.strip_prefix("look inside: "))
    }
}

/// What is inside; true when there is nothing more to choose.
fn inside(ui: &mut Ui, peek: &Peek, heard: &Heard, view: &View, out: &mut Vec<Command>) -> bool {
    ui.heading("Open this run?");
    facts(ui, peek);
    compare(ui, peek, heard, view);
    let own = heard
        .run
        .as_ref()
        .is_some_and(|run| run.folder == peek.folder);
    let busy = peek.busy && !own;
    if busy {
        ui.label(
            "Another program is writing this run. It can be looked at while it trains; to go on with it here, end the other \
             program first.",
        );
    }
    if let Some(run) = &heard.run {
        ui.label(format!(
            "The run that is loaded, {}, is saved at step {} and closed first.",
            run.name,
            grouped(heard.step)
        ));
    }
    let mut done = false;
    ui.horizontal(|ui| {
        let can = peek.last.is_some() && !busy;
        let open = ui.add_enabled(can, egui::Button::new("Open"));
        let open = open.on_hover_text("Load its last checkpoint, paused");
        let why = if busy {
            "Another program is writing this run"
        } else {
            "This folder has no checkpoint to go on from"
        };
        if open.on_disabled_hover_text(why).clicked() {
            out.push(Command::Open {
                folder: peek.folder.clone(),
                device: view.draft.device.clone(),
            });
            done = true;
        }
        let look = ui.add_enabled(!own, egui::Button::new("Look"));
        let look = look.on_hover_text(
            "Show its curves, frames and texts, and read them again every few seconds. Nothing is loaded or changed.",
        );
        if look.clicked() {
            out.push(Command::Look {
                folder: peek.folder.clone(),
            });
            done = true;
        }
        done |= ui.button("Cancel").clicked();
    });
    done
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
