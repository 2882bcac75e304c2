//! Panel: what happened, in sentences.

use egui::Ui;

use super::heard::Heard;
use super::view::View;
use crate::protocol::Command;

/// Its own state.
#[derive(Debug, Default)]
pub struct Log {}

impl Log {
    /// Draw it.
    pub fn show(&mut self, ui: &mut Ui, heard: &Heard, view: &mut View, out: &mut Vec<Command>) {
        let _ = (heard, view, out);
        ui.label("what happened, in sentences");
    }
}
