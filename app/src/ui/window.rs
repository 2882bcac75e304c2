//! The whole window: which panel lies where, and the way of events and commands.
//!
//! Wide (900 points and more): setup left, rulers right, the map between them. Narrow: the side columns are tabs under the
//! map. Phone (less than 600): one column, the controls at the bottom. Low, as over a keyboard on the screen: the map is a
//! tab, too.

use egui::{CentralPanel, Frame, Id, Margin, Panel, ScrollArea, Ui, UiBuilder};
use web_time::Instant;

use super::banners::Banners;
use super::closing::Closing;
use super::controls::{Controls, Room, beside};
use super::focus::Focus;
use super::heard::Heard;
use super::host::{Answer, Host, Purpose, Wish};
use super::interventions::Interventions;
use super::kept::Look;
use super::log::Log;
use super::looking::Looking;
use super::routing::Routing;
use super::rulers::Rulers;
use super::scrubber::Scrubber;
use super::setup::Setup;
use super::status::Status;
use super::taps::Taps;
use super::view::{Tab, View};
use super::{shortcuts, theme};
use crate::form::Edits;
use crate::protocol::{Command, Event, RunState};

/// From this width on, in points, there are side columns.
const WIDE: f32 = 900.0;

/// Height of the interventions under the map; a quarter more where its lines wrap.
const INTERVENTIONS: f32 = 112.0;

/// Width of the map's panel below which they wrap.
const NARROW_MAP: f32 = 560.0;

/// Below this width, in points, there is one column.
const PHONE: f32 = 600.0;

/// Below this height, in points, a narrow window has no room for the map and a tab.
const LOW: f32 = 560.0;

/// From this width on all controls stand in one line.
const ONE_LINE: f32 = 1180.0;

/// Seconds between two checkpoints by time on a page: a tab is closed sooner than a program.
const OFTEN: f64 = 120.0;

/// All panels and what they share.
#[derive(Default)]
pub struct Window {
    /// What is known.
    pub heard: Heard,
    /// What is looked at.
    pub view: View,
    setup: Setup,
    controls: Controls,
    banners: Banners,
    routing: Routing,
    interventions: Interventions,
    rulers: Rulers,
    scrubber: Scrubber,
    status: Status,
    log: Log,
    looking: Looking,
    /// An answer about the run on disk that is looked at has come.
    looked: bool,
    closing: Closing,
    focus: Focus,
    host: Option<Box<dyn Host>>,
    /// The style that was set: dark or light, whether nothing moves by itself, whether it is for fingers.
    styled: Option<(Look, bool, bool)>,
    /// Devices were asked for.
    greeted: bool,
    /// The list of runs may have changed.
    lists: bool,
    /// What to ask for first.
    first: Vec<Command>,
    /// Do not measure how long painting takes, so that pictures are the same every time.
    timeless: bool,
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

    /// Begin with this configuration instead of the first preset, and train it at once if `start`.
    ///
    /// # Errors
    /// If it is not TOML.
    pub fn with_draft(mut self, toml: &str, device: &str, start: bool) -> Result<Self, String> {
        self.view.draft.edits = Edits::from_toml(toml)?;
        self.view.draft.device = device.into();
        if start {
            self.view.draft.start(false, &mut self.first);
        }
        Ok(self)
    }

    /// Train on this device.
    #[must_use]
    pub fn on_device(mut self, device: &str) -> Self {
        self.view.draft.device = device.into();
        self
    }

    /// Open this run first.
    #[must_use]
    pub fn with_run(mut self, folder: &str, device: &str) -> Self {
        self.view.draft.device = device.into();
        self.first.push(Command::Open {
            folder: folder.into(),
            device: device.into(),
        });
        self
    }

    /// Show no measured times, for pictures that are compared.
    #[must_use]
    pub fn timeless(mut self) -> Self {
        self.timeless = true;
        self
    }

    /// Take an event in.
    pub fn hear(&mut self, event: Event) {
        if let Event::Ready(run) = &event
            && !self.heard.is_same_run(run)
        {
            self.view.leave_run();
            self.interventions.forget();
        }
        if let Event::Looked(run) = &event {
            if !(self.heard.looking && self.heard.is_same_run(run)) {
                self.view.leave_run();
                self.interventions.forget();
            }
            self.looked = true;
        }
        match &event {
            // It is looked into, as if it had been chosen.
            Event::Imported { folder } => {
                let answer = Answer::Folder(folder.clone());
                self.view.dialogs.answer(Purpose::OpenRun, answer);
                self.view.opening = true;
            }
            Event::Exported(file) => {
                let (name, bytes) = (file.name.clone(), file.bytes.clone());
                let save = Wish::Save { name, bytes };
                self.view.dialogs.ask(Purpose::Export, save);
            }
            // The one that was closed is the last one now.
            Event::State(RunState::Empty) => self.lists = true,
            _ => {}
        }
        self.banners.hear(&event);
        self.closing.hear(&event);
        self.view.draft.hear(&event);
        self.heard.hear(event);
    }

    /// The engine's side was started again: what it has to know, and what was asked and not answered.
    #[must_use]
    pub fn greet_again(&mut self) -> Vec<Command> {
        self.view.draft.ask_again();
        self.rulers.tell_again();
        (self.greeted, self.lists) = (true, false);
        vec![
            Command::Devices,
            Command::Autosave {
                seconds: self.view.beside.autosave,
            },
            Command::Watch {
                share: self.view.beside.share,
            },
            Command::Runs,
        ]
    }

    /// Draw everything; returns what was wished.
    pub fn show(&mut self, ui: &mut Ui) -> Vec<Command> {
        let began = Instant::now();
        let mut out = Vec::new();
        if let Some(host) = &mut self.host {
            self.view.kept.exchange(&mut **host);
        }
        let touch = self.host.as_deref().is_some_and(Host::is_touch)
            || ui.input(egui::InputState::has_touch_screen);
        let style = (self.view.kept.look(), self.view.kept.calm(), touch);
        if self.styled != Some(style) {
            theme::apply(ui.ctx(), style.1, touch);
            // A program that embeds the window may have chosen dark or light: it stays until somebody chooses here.
            if self.styled.map_or(Look::System, |(look, ..)| look) != style.0 {
                theme::choose(ui.ctx(), style.0);
            }
            if self.styled.replace(style).is_none() {
                ui.ctx().add_plugin(Taps::default());
                // Fonts and styles count from the next pass on: this one is not shown.
                theme::fonts(ui.ctx());
                ui.ctx().request_discard("first styles");
                ui.ctx().request_repaint();
                return out;
            }
        }
        if !std::mem::replace(&mut self.greeted, true) {
            if self.heard.devices.is_empty() {
                out.push(Command::Devices);
            }
            // What the engine's side does without being told.
            let untold = self.view.beside;
            if self.host.as_ref().is_some_and(|host| !host.has_folders()) {
                self.view.beside.autosave = Some(OFTEN);
            }
            if let Some(kept) = self.view.kept.beside() {
                self.view.beside = kept;
            }
            beside::tell(untold, self.view.beside, &mut out);
            self.lists = true;
        }
        // A desktop has a dialog for folders.
        if std::mem::take(&mut self.lists)
            && self.host.as_ref().is_some_and(|host| !host.has_folders())
        {
            out.push(Command::Runs);
        }
        out.append(&mut self.first);
        self.focus.follow(ui.ctx());
        self.dropped(ui);
        self.take_in(&mut out);
        shortcuts::take(ui, &self.heard, &mut self.view, &mut out);
        self.rulers.tick(&self.heard, &mut out);
        if std::mem::take(&mut self.looked) {
            self.looking.answered(ui.input(|input| input.time));
        }
        self.looking.tick(ui, &self.heard, &mut out);
        let width = ui.ctx().content_rect().width();
        self.view.narrow = width < WIDE;
        if width >= WIDE {
            self.wide(ui, width, &mut out);
        } else {
            self.narrow(ui, width, &mut out);
        }
        self.closing.show(ui, &self.heard, &mut out);
        shortcuts::show(ui, &mut self.view);
        self.view.draft.tick(ui, &mut out);
        if std::mem::take(&mut self.view.look_away) {
            self.heard.looking = false;
        }
        for folder in self.view.forget.drain(..) {
            self.heard.forget(&folder);
        }
        if let Some(host) = &mut self.host {
            self.view.dialogs.exchange(&mut **host);
            self.view.kept.exchange(&mut **host);
        }
        if !self.timeless {
            let now = began.elapsed().as_secs_f64() * 1e3;
            let old = self.view.paint;
            self.view.paint = if old == 0.0 {
                now
            } else {
                0.95 * old + 0.05 * now
            };
        }
        out
    }

    fn wide(&mut self, ui: &mut Ui, width: f32, out: &mut Vec<Command>) {
        let (heard, view) = (&self.heard, &mut self.view);
        let room = if width >= ONE_LINE {
            Room::Wide
        } else {
            Room::Narrow
        };
        Panel::top("controls").show(ui, |ui| {
            ui.add_space(2.0);
            self.controls.show(ui, room, heard, view, out);
            self.banners.show(ui, heard, view, out);
            ui.add_space(2.0);
        });
        Panel::bottom("status").show(ui, |ui| self.status.show(ui, heard, view, out));
        if view.log {
            Panel::bottom("log")
                .resizable(true)
                .default_size(150.0)
                .show(ui, |ui| self.log.show(ui, heard, view, out));
        }
        Panel::bottom("scrubber").show(ui, |ui| self.scrubber.show(ui, heard, view, out));
        Panel::left("setup")
            .default_size((0.21 * width).clamp(238.0, 300.0))
            .size_range(210.0..=0.32 * width)
            .frame(side(ui))
            .show(ui, |ui| self.setup.show(ui, heard, view, out));
        Panel::right("rulers")
            .default_size((0.25 * width).clamp(240.0, 360.0))
            .size_range(220.0..=0.45 * width)
            .frame(side(ui))
            .show(ui, |ui| self.rulers.show(ui, heard, view, out));
        CentralPanel::default().show(ui, |ui| {
            if view.intervening && self.routing.is_map() {
                // As high as it gets, so that the map keeps its size while edits and their effect come and go.
                let narrow = ui.available_width() < NARROW_MAP;
                Panel::bottom("interventions")
                    .resizable(false)
                    .exact_size(if narrow { 1.25 } else { 1.0 } * INTERVENTIONS)
                    .show(ui, |ui| {
                        ScrollArea::vertical()
                            .auto_shrink(false)
                            .show(ui, |ui| self.interventions.show(ui, heard, view, out));
                    });
            }
            self.routing.show(ui, heard, view, out);
        });
    }

    fn narrow(&mut self, ui: &mut Ui, width: f32, out: &mut Vec<Command>) {
        let height = ui.available_height();
        let low = height < LOW;
        let (heard, view) = (&self.heard, &mut self.view);
        // They are a tab here.
        view.intervening = view.tab == Tab::Routing;
        if width >= PHONE {
            Panel::top("controls").show(ui, |ui| {
                ui.add_space(2.0);
                self.controls.show(ui, Room::Phone, heard, view, out);
            });
            Panel::bottom("status").show(ui, |ui| self.status.show(ui, heard, view, out));
        } else {
            Panel::bottom("status").show(ui, |ui| self.status.brief(ui, heard, view));
            Panel::bottom("controls").show(ui, |ui| {
                ui.add_space(4.0);
                self.controls.show(ui, Room::Phone, heard, view, out);
                ui.add_space(4.0);
            });
        }
        if self.banners.any(heard, view) {
            Panel::top("banners").show(ui, |ui| self.banners.show(ui, heard, view, out));
        }
        if view.log {
            Panel::bottom("log")
                .resizable(true)
                .default_size(120.0)
                .show(ui, |ui| self.log.show(ui, heard, view, out));
        }
        if view.draft.go_to.is_some() {
            view.tab = Tab::Setup;
        }
        if !low {
            if view.tab == Tab::Map {
                view.tab = Tab::Routing;
            }
            // About half of the height for the map, the other half for the tab.
            Panel::top("map")
                .exact_size((0.43 * height).max(180.0))
                .show(ui, |ui| {
                    scrolled(ui, |ui| self.routing.show(ui, heard, view, out))
                });
        }
        if !low || view.tab == Tab::Map {
            Panel::bottom("scrubber").show(ui, |ui| self.scrubber.show(ui, heard, view, out));
        }
        Panel::top("tabs").show(ui, |ui| tabs(ui, low, view));
        CentralPanel::default().show(ui, |ui| {
            // What is typed here stays when a keyboard on the screen takes the room of the map.
            let same = UiBuilder::new().scope_id(Id::unique("narrow tab"));
            ui.scope_builder(same, |ui| match view.tab {
                Tab::Setup => self.setup.show(ui, heard, view, out),
                Tab::Map => scrolled(ui, |ui| self.routing.show(ui, heard, view, out)),
                Tab::Routing => {
                    scrolled(ui, |ui| self.interventions.show(ui, heard, view, out));
                }
                tab => self.rulers.tab(ui, tab, heard, view, out),
            });
        });
    }

    /// What was dropped and read by the host: a configuration, a run, a checkpoint, or else a text to learn.
    fn take_in(&mut self, out: &mut Vec<Command>) {
        let Some(answer) = self.view.dialogs.take(Purpose::Dropped) else {
            return;
        };
        let mut files = match answer {
            Answer::Files(files) => files,
            Answer::File { name, bytes, .. } => vec![(name, bytes)],
            Answer::Failed(message) => return self.refuse(message),
            Answer::Folder(_) | Answer::Saved(_) => return,
        };
        if files.len() != 1 {
            return self.view.import(files, out);
        }
        let Some((name, bytes)) = files.pop() else {
            return;
        };
        match ending(&name).as_str() {
            "zip" | "safetensors" => self.view.import(vec![(name, bytes)], out),
            "toml" => {
                let text = String::from_utf8(bytes);
                let text = text.map_err(|_| "it is not UTF-8 text".to_owned());
                match text.and_then(|text| Edits::from_toml(&text)) {
                    Ok(edits) => {
                        self.view.draft.edits = edits;
                        self.view.tab = Tab::Setup;
                    }
                    Err(error) => self.refuse(format!("{name}: {error}")),
                }
            }
            _ => {
                let answer = Answer::File {
                    name,
                    readable: false,
                    bytes,
                };
                self.view.dialogs.answer(Purpose::Text, answer);
                self.view.tab = Tab::Setup;
            }
        }
    }

    /// What came from outside is nothing that can be used.
    fn refuse(&mut self, message: String) {
        self.hear(Event::Failed {
            what: "import".into(),
            message,
            field: None,
        });
    }

    /// A text that was dropped on the window is the one to learn; a folder, the run to look into.
    fn dropped(&mut self, ui: &Ui) {
        let files = ui.input(|input| input.raw.dropped_files.clone());
        let Some(file) = files.into_iter().next() else {
            return;
        };
        let path = file.path();
        if path.is_dir() {
            let folder = path.to_string_lossy().into_owned();
            let answer = Answer::Folder(folder);
            self.view.dialogs.answer(Purpose::OpenRun, answer);
            self.view.opening = true;
        } else if path.is_absolute() {
            let name = path.to_string_lossy().into_owned();
            let answer = Answer::File {
                name,
                readable: true,
                bytes: Vec::new(),
            };
            self.view.dialogs.answer(Purpose::Text, answer);
            self.view.tab = Tab::Setup;
        } else if let Some(host) = &mut self.host {
            host.dropped(file);
        }
    }
}

fn scrolled(ui: &mut Ui, contents: impl FnOnce(&mut Ui)) {
    ScrollArea::vertical().auto_shrink(false).show(ui, contents);
}

/// The choice of what stands under the map, or instead of it. The map has a tab only where it is not there anyway; the tab
/// of the interventions shows what can be done to it.
fn tabs(ui: &mut Ui, low: bool, view: &mut View) {
    let all = [
        (Tab::Map, "Map"),
        (Tab::Setup, "Setup"),
        (Tab::Curves, "Curves"),
        (Tab::Samples, "Samples"),
        (Tab::Routing, "Interventions"),
        (Tab::Compare, "Compare"),
    ];
    ScrollArea::horizontal().show(ui, |ui| {
        ui.horizontal(|ui| {
            for (tab, name) in all.into_iter().skip(usize::from(!low)) {
                ui.selectable_value(&mut view.tab, tab, name);
            }
        });
    });
}

/// The ending of a file's name, in small letters.
fn ending(name: &str) -> String {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    ending.unwrap_or_default().to_lowercase()
}

fn side(ui: &Ui) -> Frame {
    Frame::new()
        .fill(ui.visuals().panel_fill)
        .inner_margin(Margin::symmetric(8, 6))
}
