//! Keys that work everywhere, and the list of all keys.

use egui::{Grid, Key, KeyboardShortcut, Modal, Modifiers, RichText, Ui};

use super::controls;
use super::heard::Heard;
use super::view::View;
use crate::protocol::{Command, RunState};

const SAVE: KeyboardShortcut = KeyboardShortcut::new(Modifiers::COMMAND, Key::S);

const QUIT: KeyboardShortcut = KeyboardShortcut::new(Modifiers::COMMAND, Key::Q);

const LIST: [(&str, &str); 9] = [
    ("Space", "start, pause, resume"),
    ("→", "one step, when paused"),
    ("← →", "earlier or later frame, in the time scrubber"),
    ("Esc", "undo the last intervention"),
    ("Ctrl+S", "write a checkpoint"),
    (
        "Ctrl+Q",
        "close the window; asks if something would be lost",
    ),
    ("Tab", "to the next control"),
    ("Arrows", "move the selection, in the map"),
    ("F1", "this list"),
];

/// Take keys in, before any panel. A control that has the focus keeps its keys.
pub(super) fn take(ui: &Ui, heard: &Heard, view: &mut View, out: &mut Vec<Command>) {
    if ui.input_mut(|input| input.consume_shortcut(&SAVE)) && heard.run.is_some() {
        out.push(Command::Save);
    }
    if ui.input_mut(|input| input.consume_shortcut(&QUIT)) {
        ui.ctx().send_viewport_cmd(egui::ViewportCommand::Close);
    }
    if ui.input_mut(|input| input.consume_key(Modifiers::NONE, Key::F1)) {
        view.shortcuts = !view.shortcuts;
    }
    let dialog = ui.memory(|memory| memory.top_modal_layer().is_some());
    let focus = ui.memory(|memory| memory.focused().is_some());
    if dialog || focus || view.shortcuts || egui::Popup::is_any_open(ui.ctx()) {
        return;
    }
    // A new run after the end of another is worth a look at the button.
    let primary = controls::primary(heard);
    if primary != controls::Primary::Restart
        && ui.input_mut(|input| input.consume_key(Modifiers::NONE, Key::Space))
    {
        controls::act(&primary, heard, view, out);
    }
    let paused = *heard.state() == RunState::Paused;
    if paused && ui.input_mut(|input| input.consume_key(Modifiers::NONE, Key::ArrowRight)) {
        out.push(Command::Step);
    }
}

/// The list, if it is wanted.
pub(super) fn show(ui: &mut Ui, view: &mut View) {
    if !view.shortcuts {
        return;
    }
    let modal = Modal::new(egui::Id::unique("shortcuts")).show(ui.ctx(), |ui| {
        ui.heading("Keyboard");
        Grid::new("shortcuts")
            .num_columns(2)
            .striped(true)
            .show(ui, |ui| {
                for (key, what) in LIST {
                    ui.label(RichText::new(key).monospace());
                    ui.label(what);
                    ui.end_row();
                }
            });
        ui.button("Close").clicked()
    });
    if modal.inner || modal.should_close() {
        view.shortcuts = false;
    }
}
