//! Panel: start, pause, step, stop, learning rate.

pub(super) mod beside;
mod goal;
mod last;
mod open;
mod progress;
mod rate;

use egui::{Button, Label, RichText, Ui, vec2};

use super::diagnostics;
use super::heard::Heard;
use super::kept::{Kept, Look};
use super::theme;
use super::view::View;
use crate::form::KINDS;
use crate::protocol::{Command, RunState};
use goal::Goal;
use open::Open;
use rate::Rate;

/// Its own state.
#[derive(Debug, Default)]
pub(super) struct Controls {
    rate: Rate,
    goal: Goal,
    open: Open,
    saving: Saving,
}

/// The button that writes a checkpoint: it says for a moment that one was written.
#[derive(Debug, Default)]
struct Saving {
    /// Step of the last checkpoint.
    last: Option<u64>,
    /// When it was written, in seconds of the window's clock.
    at: Option<f64>,
}

/// How much room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// Everything in one line.
    Wide,
    /// One line; what is seldom needed is in a menu.
    Narrow,
    /// Two lines, for a thumb.
    Phone,
}

/// Width of the learning rate without its slider.
const RATE: f32 = 90.0;

/// What the primary button does now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Primary {
    Start,
    Pause,
    Resume,
    Restart,
    Wait(String),
}

/// The primary action in this state.
pub(super) fn primary(heard: &Heard) -> Primary {
    match heard.state() {
        RunState::Empty => Primary::Start,
        RunState::Preparing { stage, done, of } if *of > 0 => {
            Primary::Wait(format!("{stage}, {done} of {of}"))
        }
        RunState::Preparing { stage, .. } => Primary::Wait(stage.clone()),
        RunState::Running => Primary::Pause,
        RunState::Paused => Primary::Resume,
        RunState::Finished | RunState::Diverged { .. } => Primary::Restart,
    }
}

/// Do it, if that is possible.
pub(super) fn act(action: &Primary, heard: &Heard, view: &mut View, out: &mut Vec<Command>) {
    match action {
        Primary::Start | Primary::Restart if view.draft.error(heard).is_none() => {
            view.draft.start(false, out);
        }
        Primary::Pause => out.push(Command::Pause),
        Primary::Resume => out.push(Command::Resume),
        _ => {}
    }
}

impl Controls {
    /// Draw it.
    pub(super) fn show(
        &mut self,
        ui: &mut Ui,
        room: Room,
        heard: &Heard,
        view: &mut View,
        out: &mut Vec<Command>,
    ) {
        match room {
            Room::Wide => {
                ui.horizontal(|ui| {
                    title(ui, heard, view, 200.0);
                    buttons(ui, heard, view, out);
                    ui.separator();
                    self.rate.show(ui, 110.0, heard, view, out);
                    self.goal.show(ui, heard, out);
                    ui.separator();
                    progress::show(ui, 210.0, heard);
                    ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                        Self::menu(ui, heard, view, out);
                        open_button(ui, view);
                        self.saving.show(ui, heard, out);
                    });
                });
            }
            Room::Narrow => {
                ui.horizontal(|ui| {
                    title(ui, heard, view, 104.0);
                    buttons(ui, heard, view, out);
                    ui.separator();
                    self.rate.show(ui, 56.0, heard, view, out);
                    self.goal.show(ui, heard, out);
                    ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                        Self::menu(ui, heard, view, out);
                        self.saving.show(ui, heard, out);
                        let width = ui.available_width().min(170.0);
                        progress::show(ui, width, heard);
                    });
                });
            }
            Room::Phone => {
                ui.horizontal(|ui| {
                    buttons(ui, heard, view, out);
                    ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                        Self::menu(ui, heard, view, out);
                    });
                });
                ui.horizontal(|ui| {
                    // Where there is no room for the slider, the number can be dragged, or typed.
                    let slider = (ui.available_width() - 420.0).clamp(0.0, 120.0);
                    let rest = RATE + if slider > 0.0 { slider + 8.0 } else { 0.0 };
                    ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                        self.saving.show(ui, heard, out);
                        self.goal.show(ui, heard, out);
                        ui.with_layout(egui::Layout::left_to_right(egui::Align::Center), |ui| {
                            let width = (ui.available_width() - rest).min(260.0);
                            progress::show(ui, width, heard);
                            self.rate.show(ui, slider, heard, view, out);
                        });
                    });
                });
            }
        }
        self.open.show(ui, heard, view, out);
    }

    fn menu(ui: &mut Ui, heard: &Heard, view: &mut View, out: &mut Vec<Command>) {
        let menu = ui.menu_button("Menu", |ui| {
            if ui.button("Open a run …").clicked() {
                view.opening = true;
            }
            last::downloads(ui, heard, view, out);
            ui.checkbox(&mut view.log, "Log");
            let hint = "Version, devices, configuration and the last errors: for a bug report";
            if ui.button("Copy diagnostics").on_hover_text(hint).clicked() {
                ui.ctx().copy_text(diagnostics::text(heard, view));
            }
            ui.separator();
            beside::show(ui, view, out);
            ui.separator();
            ui.label(RichText::new("Appearance").weak());
            appearance(ui, &mut view.kept);
            let mut calm = view.kept.calm();
            let motion = ui.checkbox(&mut calm, "Reduced motion");
            let motion = motion.on_hover_text(
                "Nothing fades, slides or turns by itself. Kept for the next start.",
            );
            if motion.changed() {
                view.kept.set_calm(calm);
            }
            ui.separator();
            if ui.button("Keyboard shortcuts (F1)").clicked() {
                view.shortcuts = true;
            }
            ui.label(
                RichText::new(format!("Braid {}", env!("CARGO_PKG_VERSION")))
                    .weak()
                    .small(),
            );
        });
        menu.response
            .widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, true, "menu"));
    }
}

/// Dark, light, or as the system has it.
fn appearance(ui: &mut Ui, kept: &mut Kept) {
    let mut look = kept.look();
    ui.horizontal(|ui| {
        for (value, name) in [
            (Look::System, "System"),
            (Look::Dark, "Dark"),
            (Look::Light, "Light"),
        ] {
            ui.selectable_value(&mut look, value, name);
        }
    });
    kept.set_look(look);
}

/// What is trained, in a few words.
fn title(ui: &mut Ui, heard: &Heard, view: &View, width: f32) {
    let values = heard.subject().map(|run| &run.values);
    let of = |key: &str| -> Option<String> {
        match values {
            Some(values) => {
                let value = values.iter().find(|(own, _)| own == key);
                value.map(|(_, value)| value.trim_matches('"').to_owned())
            }
            None => {
                let value = view.draft.edits.value(key)?;
                Some(value.as_str().map_or(value.to_string(), str::to_owned))
            }
        }
    };
    let kind = of("residual.kind").unwrap_or_default();
    let file = of("data.file").map(|file| {
        let name = file.rsplit(['/', '\\']).next().unwrap_or_default();
        if name.is_empty() {
            "a text".to_owned()
        } else {
            name.to_owned()
        }
    });
    let data = file.or(of("data.task")).unwrap_or_default();
    let name = KINDS.iter().find(|row| row.kind == kind);
    ui.allocate_ui_with_layout(
        vec2(width, 34.0),
        egui::Layout::top_down(egui::Align::Min),
        |ui| {
            ui.set_width(width);
            ui.spacing_mut().item_spacing.y = 0.0;
            let folder = heard.subject().map_or("", |run| run.folder.as_str());
            let place = match folder {
                "" => "Braid".to_owned(),
                folder => folder.to_owned(),
            };
            let kept = match folder {
                "" => String::new(),
                folder => format!("\nkept in {folder}"),
            };
            let words = format!(
                "{} on {data}{kept}",
                name.map_or(kind.as_str(), |row| row.name)
            );
            ui.add(Label::new(RichText::new(place).strong()).truncate())
                .on_hover_text(&words);
            ui.add(Label::new(RichText::new(format!("{kind} · {data}")).small()).truncate())
                .on_hover_text(&words);
        },
    );
}

fn buttons(ui: &mut Ui, heard: &Heard, view: &mut View, out: &mut Vec<Command>) {
    let action = primary(heard);
    let error = view.draft.error(heard);
    let (text, hint) = match &action {
        Primary::Start => ("Start", "Train this configuration (space)"),
        Primary::Pause => (
            "Pause",
            "Stop after this step; everything stays in memory (space)",
        ),
        Primary::Resume => ("Resume", "Go on (space)"),
        Primary::Restart => ("Restart", "Begin a new run of this configuration"),
        Primary::Wait(_) => (" ", ""),
    };
    let starts = matches!(action, Primary::Start | Primary::Restart);
    let waits = matches!(action, Primary::Wait(_));
    let enabled = !waits && (!starts || error.is_none());
    let high = ui.spacing().interact_size.y.max(28.0);
    let mut button = Button::new(text).min_size(vec2(96.0, high));
    // After a loss that is not finite the primary action stands in the banner.
    if !matches!(heard.state(), RunState::Diverged { good: Some(_), .. }) {
        let white = RichText::new(text).color(egui::Color32::WHITE).strong();
        button = Button::new(white)
            .fill(theme::ACCENT)
            .min_size(vec2(96.0, high));
    }
    let button = ui.add_enabled(enabled, button).on_hover_text(hint);
    let button = match (&action, &error) {
        (Primary::Wait(stage), _) => {
            button.on_disabled_hover_text(format!("Being prepared: {stage}"))
        }
        (_, Some(error)) => button.on_disabled_hover_text(&error.message),
        _ => button,
    };
    if waits {
        let spinner = egui::Spinner::new().size(16.0).color(egui::Color32::WHITE);
        let rect = egui::Rect::from_center_size(button.rect.center(), vec2(16.0, 16.0));
        if !view.kept.calm() {
            spinner.paint_at(ui, rect);
        }
        button.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, false, "preparing"));
    }
    if button.clicked() {
        act(&action, heard, view, out);
    }
    let loaded = heard.run.is_some() && !waits;
    let small = |text: &str, width: f32| Button::new(text.to_owned()).min_size(vec2(width, high));
    let can_step = matches!(heard.state(), RunState::Paused | RunState::Empty);
    let step = ui
        .add_enabled(can_step && (loaded || error.is_none()), small("Step", 48.0))
        .on_hover_text("One update, then pause (right arrow)")
        .on_disabled_hover_text("Pause first, then go step by step");
    if step.clicked() {
        if loaded {
            out.push(Command::Step);
        } else {
            view.draft.start(true, out);
            out.push(Command::Step);
        }
    }
    let stop = ui
        .add_enabled(loaded, small("Stop", 48.0))
        .on_hover_text("Save the run and close it")
        .on_disabled_hover_text("No run is loaded");
    if stop.clicked() {
        out.push(Command::Stop);
    }
    // Nothing can be begun anew yet: its place is that of the run that was loaded last.
    if last::offer(ui, heard, view, out) {
        return;
    }
    // Once is enough, but its place is kept.
    let once = action != Primary::Restart;
    ui.scope(|ui| {
        if !once {
            ui.set_invisible();
        }
        restart(ui, heard, view, out, once && loaded && error.is_none());
    });
}

/// A new run of the draft; suggested when it differs from the run that is loaded.
fn restart(ui: &mut Ui, heard: &Heard, view: &mut View, out: &mut Vec<Command>, enabled: bool) {
    let news = view.draft.news(heard);
    let mut text = RichText::new("Restart");
    if !news.is_empty() {
        text = text.color(ui.visuals().warn_fg_color);
    }
    let lines: Vec<String> = news
        .iter()
        .map(|entry| {
            let shown = |value: &Option<String>| value.clone().unwrap_or("nothing".into());
            format!(
                "{}: {} → {}",
                entry.key,
                shown(&entry.left),
                shown(&entry.right)
            )
        })
        .take(8)
        .collect();
    let hint = if lines.is_empty() {
        "Save this run and begin a new one of the same configuration".to_owned()
    } else {
        format!(
            "The configuration was changed; it counts for a new run:\n{}",
            lines.join("\n")
        )
    };
    let high = ui.spacing().interact_size.y.max(28.0);
    let button = Button::new(text).min_size(vec2(62.0, high));
    let button = ui
        .add_enabled(enabled, button)
        .on_hover_text(hint)
        .on_disabled_hover_text("There is no run to replace");
    if button.clicked() {
        view.draft.start(false, out);
    }
}

/// Seconds for which the button says that it is done.
const DONE: f64 = 2.0;

impl Saving {
    fn show(&mut self, ui: &mut Ui, heard: &Heard, out: &mut Vec<Command>) {
        let now = ui.input(|input| input.time);
        let step = heard.saved.as_ref().map(|(step, _)| *step);
        // A checkpoint of this process; one that was there before has no place.
        let new = matches!(&heard.saved, Some((_, Some(_))));
        if self.last != step {
            self.at = (new && step.is_some()).then_some(now);
            self.last = step;
        }
        let done = self.at.is_some_and(|at| now - at < DONE);
        if done {
            ui.ctx().request_repaint_after_secs(DONE as f32);
        }
        let hint = match &heard.saved {
            Some((step, Some(path))) => {
                format!("Write a checkpoint (Ctrl+S). Last: step {step}, {path}")
            }
            Some((step, None)) => format!("Write a checkpoint (Ctrl+S). Last: step {step}"),
            None => "Write a checkpoint (Ctrl+S)".to_owned(),
        };
        let text = if done { "Saved" } else { "Save" };
        let button = Button::new(text).min_size(vec2(48.0, 0.0));
        let button = ui
            .add_enabled(heard.run.is_some(), button)
            .on_hover_text(hint)
            .on_disabled_hover_text("No run is loaded");
        if button.clicked() {
            out.push(Command::Save);
            if step == Some(heard.step) {
                // It is saved already.
                self.at = Some(now);
            }
        }
    }
}

fn open_button(ui: &mut Ui, view: &mut View) {
    let button = ui
        .button("Open…")
        .on_hover_text("Look into a run on disk, and go on with it");
    // There is another button with this word in the setup.
    let button = button.accessible_name("open a run");
    if button.clicked() {
        view.opening = true;
    }
}
