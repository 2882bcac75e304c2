//! The whole window: which panel lies where, and the way of events and commands.

use egui::{CentralPanel, Panel, Ui};

use super::controls::Controls;
use super::heard::Heard;
use super::host::Host;
use super::interventions::Interventions;
use super::log::Log;
use super::routing::Routing;
use super::rulers::Rulers;
use super::scrubber::Scrubber;
use super::setup::Setup;
use super::status::Status;
use super::view::View;
use crate::protocol::{Command, Event};

/// All panels and what they share.
#[derive(Default)]
pub struct Window {
    /// What is known.
    pub heard: Heard,
    /// What is looked at.
    pub view: View,
    setup: Setup,
    controls: Controls,
    routing: Routing,
    interventions: Interventions,
    rulers: Rulers,
    scrubber: Scrubber,
    status: Status,
    log: Log,
    host: Option<Box<dyn Host>>,
}

impl std::fmt::Debug for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Window")
            .field("view", &self.view)
            .finish_non_exhaustive()
    }
}

impl Window {
    /// Who opens file dialogs.
    #[must_use]
    pub fn with_host(mut self, host: Box<dyn Host>) -> Self {
        self.host = Some(host);
        self
    }

    /// Take an event in.
    pub fn hear(&mut self, event: Event) {
        self.heard.hear(event);
    }

    /// Draw everything; returns what was wished.
    pub fn show(&mut self, ui: &mut Ui) -> Vec<Command> {
        let mut out = Vec::new();
        let (heard, view) = (&self.heard, &mut self.view);
        self.rulers.tick(heard, &mut out);
        Panel::top("controls").show(ui, |ui| self.controls.show(ui, heard, view, &mut out));
        Panel::bottom("status").show(ui, |ui| self.status.show(ui, heard, view, &mut out));
        Panel::bottom("log").show(ui, |ui| self.log.show(ui, heard, view, &mut out));
        Panel::bottom("scrubber").show(ui, |ui| self.scrubber.show(ui, heard, view, &mut out));
        Panel::left("setup").show(ui, |ui| self.setup.show(ui, heard, view, &mut out));
        Panel::right("rulers")
            .default_size(360.0)
            .size_range(260.0..=640.0)
            .show(ui, |ui| self.rulers.show(ui, heard, view, &mut out));
        CentralPanel::default().show(ui, |ui| {
            self.routing.show(ui, heard, view, &mut out);
            self.interventions.show(ui, heard, view, &mut out);
        });
        for folder in self.view.forget.drain(..) {
            self.heard.forget(&folder);
        }
        if let Some(host) = &mut self.host {
            self.view.dialogs.exchange(&mut **host);
        }
        out
    }
}
