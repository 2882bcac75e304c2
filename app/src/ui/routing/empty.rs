//! What a view says that has nothing to draw: what is missing, and why.

use egui::{RichText, Ui};

/// A heading and a sentence in the middle of what is free.
pub(super) fn say(ui: &mut Ui, heading: &str, sentence: &str) {
    let room = ui.available_height();
    ui.add_space((0.3 * room).min(90.0));
    ui.vertical_centered(|ui| {
        ui.label(RichText::new(heading).strong().size(15.0));
        ui.set_max_width(ui.available_width().min(440.0));
        ui.label(RichText::new(sentence).weak());
    });
}
