//! The right column: what is measured beside the routing view. Curves, samples, and the comparison of runs share its
//! height by fixed rules, so that nothing moves while numbers change.

use egui::{CollapsingHeader, RichText, ScrollArea, Ui};

use super::compare::Compare;
use super::curves::Curves;
use super::heard::Heard;
use super::samples::Samples;
use super::view::{Tab, View};
use crate::protocol::Command;

/// Height of a section's headline, with what is around it.
const HEADLINE: f32 = 26.0;

/// The panels of the column.
#[derive(Debug, Default)]
pub struct Rulers {
    curves: Curves,
    samples: Samples,
    compare: Compare,
    /// The comparison was open in the last frame.
    open: bool,
    /// It is being opened.
    opening: bool,
}

impl Rulers {
    /// What has to happen whether or not anything of this is on the screen: samples that are due. Call once a frame.
    pub fn tick(&mut self, heard: &Heard, out: &mut Vec<Command>) {
        self.samples.tick(heard, out);
    }

    /// The engine's side was started again, and knows nothing of what it was told.
    pub(super) fn tell_again(&mut self) {
        self.samples.tell_again();
    }

    /// Draw all of it on the space there is; it scrolls where that is too little.
    pub fn show(&mut self, ui: &mut Ui, heard: &Heard, view: &mut View, out: &mut Vec<Command>) {
        let height = ui.available_height() - 3.0 * HEADLINE;
        let curves = (0.66 * height).max(260.0);
        let samples = (height - curves).max(120.0);
        ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
            section("Curves", true)
                .show_unindented(ui, |ui| self.curves.show(ui, heard, view, curves));
            section("Samples", true)
                .show_unindented(ui, |ui| self.samples.show(ui, heard, samples, out));
            let runs = self.compare.count(heard);
            let compare = if runs > 1 {
                format!("Compare · {runs} runs")
            } else {
                "Compare".into()
            };
            let shown = section(&compare, false)
                .id_salt("compare")
                .show_unindented(ui, |ui| self.compare.show(ui, heard, view, out));
            // It opens below the end of the column: go there while it grows.
            let open = shown.openness > 0.0;
            self.opening |= open && !std::mem::replace(&mut self.open, open);
            if self.opening {
                shown.header_response.scroll_to_me(Some(egui::Align::TOP));
                self.opening = !shown.fully_open();
            }
        });
    }

    /// Draw one panel alone: a tab of a narrow window. Other tabs draw nothing.
    pub fn tab(
        &mut self,
        ui: &mut Ui,
        tab: Tab,
        heard: &Heard,
        view: &mut View,
        out: &mut Vec<Command>,
    ) {
        let height = ui.available_height();
        ScrollArea::vertical()
            .auto_shrink(false)
            .show(ui, |ui| match tab {
                Tab::Curves => self.curves.show(ui, heard, view, height.max(360.0)),
                Tab::Samples => self.samples.show(ui, heard, height, out),
                Tab::Compare => self.compare.show(ui, heard, view, out),
                Tab::Map | Tab::Routing | Tab::Setup => {}
            });
    }
}

fn section(title: &str, open: bool) -> CollapsingHeader {
    CollapsingHeader::new(RichText::new(title).strong()).default_open(open)
}
