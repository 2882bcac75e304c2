//! Panel: the configuration and what follows from it.

use egui::Ui;

use super::heard::Heard;
use super::view::View;
use crate::protocol::Command;

/// Its own state.
#[derive(Debug, Default)]
pub struct Setup {}

impl Setup {
    /// Draw it.
    pub fn show(&mut self, ui: &mut Ui, heard: &Heard, view: &mut View, out: &mut Vec<Command>) {
        let _ = (heard, view, out);
        ui.label("the configuration and what follows from it");
    }
}
