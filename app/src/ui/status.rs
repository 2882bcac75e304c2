//! Panel: device, speed, memory.

use egui::Ui;

use super::heard::Heard;
use super::view::View;
use crate::protocol::Command;

/// Its own state.
#[derive(Debug, Default)]
pub struct Status {}

impl Status {
    /// Draw it.
    pub fn show(&mut self, ui: &mut Ui, heard: &Heard, view: &mut View, out: &mut Vec<Command>) {
        let _ = (heard, view, out);
        ui.label("device, speed, memory");
    }
}
