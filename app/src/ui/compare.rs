//! Panel: several runs in one table and one chart.

use egui::Ui;

use super::heard::Heard;
use super::view::View;
use crate::protocol::Command;

/// Its own state.
#[derive(Debug, Default)]
pub struct Compare {}

impl Compare {
    /// Draw it.
    pub fn show(&mut self, ui: &mut Ui, heard: &Heard, view: &mut View, out: &mut Vec<Command>) {
        let _ = (heard, view, out);
        ui.label("several runs in one table and one chart");
    }
}
