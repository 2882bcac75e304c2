//! What the engine does beside the steps: checkpoints by time, and frames.

use egui::{RichText, Ui};

use crate::protocol::Command;
use crate::ui::view::{Beside, View};

const AUTOSAVE: [(Option<f64>, &str); 5] = [
    (None, "off"),
    (Some(120.0), "2 min"),
    (Some(600.0), "10 min"),
    (Some(1800.0), "30 min"),
    (Some(7200.0), "2 h"),
];

const SHARES: [(f64, &str); 5] = [
    (0.0, "0 %"),
    (0.01, "1 %"),
    (0.03, "3 %"),
    (0.1, "10 %"),
    (0.3, "30 %"),
];

/// Draw the choices, as a part of a menu.
pub(super) fn show(ui: &mut Ui, view: &mut View, out: &mut Vec<Command>) {
    let before = view.beside;
    let Beside { autosave, share } = &mut view.beside;
    ui.label(RichText::new("Checkpoint by time, besides those by step").weak())
        .on_hover_text(
            "How old the last checkpoint gets before another one is written. Which steps are saved changes no step.",
        );
    ui.horizontal(|ui| {
        for (value, name) in AUTOSAVE {
            ui.selectable_value(autosave, value, name);
        }
    });
    ui.label(RichText::new("Time for frames of the routing").weak())
        .on_hover_text(
            "Share of the training time that goes into looking at the model: the more, the smoother the map moves, and the \
             slower it trains. With 0 % the map moves at validations, pauses and the end. What is looked at trains to the \
             same bits.",
        );
    ui.horizontal(|ui| {
        for (value, name) in SHARES {
            ui.selectable_value(share, value, name);
        }
    });
    ui.weak("Kept for the next start.");
    if view.beside != before {
        view.kept.set_beside(view.beside);
        tell(before, view.beside, out);
    }
}

/// Say what has changed.
pub(in crate::ui) fn tell(before: Beside, now: Beside, out: &mut Vec<Command>) {
    if now.autosave != before.autosave {
        out.push(Command::Autosave {
            seconds: now.autosave,
        });
    }
    if now.share != before.share {
        out.push(Command::Watch { share: now.share });
    }
}
