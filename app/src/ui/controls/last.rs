//! Where runs are no folders that a person can go to, as in a browser: the last one is offered, and runs are handed out.

use egui::{Button, Ui, vec2};
use web_time::{SystemTime, UNIX_EPOCH};

use crate::protocol::{Command, KeptRun, Piece, RunState};
use crate::ui::banners::hand_out;
use crate::ui::format::{age, grouped};
use crate::ui::heard::Heard;
use crate::ui::view::View;

/// `dar recall · step 20 of 50 · 5 min ago`
pub(super) fn words(run: &KeptRun) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |since| since.as_secs());
    let mut words = if run.name.is_empty() {
        "damaged".to_owned()
    } else {
        run.name.clone()
    };
    if let Some(last) = run.last {
        let (last, steps) = (grouped(last), grouped(run.steps));
        words += &format!(" · step {last} of {steps}");
    }
    if let Some(saved) = run.saved {
        words += &format!(" · {}", age(now.saturating_sub(saved)));
    }
    words
}

/// The run that was saved last, while none is loaded; whether there is one.
pub(super) fn offer(ui: &mut Ui, heard: &Heard, view: &View, out: &mut Vec<Command>) -> bool {
    let last = heard.runs.iter().find(|run| run.last.is_some());
    let free = *heard.state() == RunState::Empty && !view.dialogs.has_folders();
    let Some(last) = last.filter(|_| free) else {
        return false;
    };
    // On a phone the menu needs the rest of the line.
    let text = if ui.available_width() < 170.0 {
        "Resume last"
    } else {
        "Resume last run"
    };
    let button = Button::new(text).min_size(vec2(62.0, 28.0));
    let button = ui.add(button).on_hover_text(format!(
        "Open {} as it was saved, paused\n{}",
        last.folder,
        words(last)
    ));
    let button = button.accessible_name("Resume last run");
    if button.clicked() {
        out.push(Command::Open {
            folder: last.folder.clone(),
            device: view.draft.device.clone(),
        });
    }
    true
}

/// What can be taken out of the browser of the run that is loaded.
pub(super) fn downloads(ui: &mut Ui, heard: &Heard, view: &View, out: &mut Vec<Command>) {
    let Some(run) = &heard.run else { return };
    if view.dialogs.has_folders() {
        return;
    }
    for (piece, name, hint) in [
        (
            Piece::Run,
            "Download this run",
            "All of it as a .zip: it can be dropped on this page, or unpacked for the program on a desktop",
        ),
        (
            Piece::Checkpoint,
            "Download the model",
            "The parameters, as a .safetensors file",
        ),
    ] {
        if ui.button(name).on_hover_text(hint).clicked() {
            hand_out(&run.folder, piece, heard, out);
        }
    }
}
