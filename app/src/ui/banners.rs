//! What needs attention: a loss that is not finite, a wish that failed, a device that was lost, no GPU.

use egui::{RichText, Sides, Ui};
use web_time::{Duration, Instant};

use super::format::grouped;
use super::heard::Heard;
use super::host::{Answer, Purpose};
use super::looking;
use super::theme;
use super::view::{Tab, View};
use crate::protocol::{Command, Event, Piece, RunState};

/// A wish that was not fulfilled.
#[derive(Clone, Debug)]
struct Failure {
    what: String,
    message: String,
    field: Option<String>,
}

/// A wish that fails this soon after another fails because of it: a step without the run that could not be started.
const BURST: Duration = Duration::from_secs(1);

/// Its own state.
#[derive(Debug, Default)]
pub(super) struct Banners {
    failure: Option<Failure>,
    /// When the last wish failed.
    failed: Option<Instant>,
    /// A device was lost and opened again.
    lost: Option<String>,
    /// Nobody wants to read again that there is no GPU.
    seen_no_gpu: bool,
    /// Why something is not kept, read and put away.
    seen_kept: Option<String>,
    /// The same of runs.
    seen_runs: Option<String>,
    /// Why there is none, where the program around the window knows.
    no_gpu: Option<String>,
}

/// Kinds of devices that are GPUs; `software` draws with the processor.
const GPUS: [&str; 4] = ["discrete", "integrated", "virtual", "other"];

impl Banners {
    /// Take an event in.
    pub(super) fn hear(&mut self, event: &Event) {
        match event {
            Event::Failed {
                what,
                message,
                field,
            } => {
                let now = Instant::now();
                let before = self.failed.replace(now);
                let burst = before.is_some_and(|before| now.duration_since(before) < BURST);
                // These two are told where they were asked for.
                let elsewhere = ["quit", "look inside"].contains(&what.as_str());
                if !(elsewhere || burst && self.failure.is_some()) {
                    self.failure = Some(Failure {
                        what: what.clone(),
                        message: message.clone(),
                        field: field.clone(),
                    });
                }
            }
            Event::NoGpu { message } => self.no_gpu = Some(message.clone()),
            Event::DeviceLost { message, .. } => self.lost = Some(message.clone()),
            // It went well after all. That the engine broke stays true.
            Event::Ready(_) | Event::Saved { .. } => {
                self.failure.take_if(|failure| failure.what != "worker");
            }
            _ => {}
        }
    }

    fn no_gpu(&self, heard: &Heard) -> bool {
        let gpu = |kind: &str| GPUS.contains(&kind);
        let none = heard.devices.iter().all(|device| !gpu(&device.kind));
        none && !heard.devices.is_empty() && !self.seen_no_gpu && heard.run.is_none()
    }

    /// Why presets or appearance are not kept, if nobody has read it yet.
    fn not_kept<'a>(&self, view: &'a View) -> Option<&'a str> {
        let failed = view.kept.failed();
        failed.filter(|failed| self.seen_kept.as_deref() != Some(*failed))
    }

    /// Why runs are not kept, if nobody has read it yet.
    fn runs_not_kept<'a>(&self, heard: &'a Heard) -> Option<&'a str> {
        let trouble = heard.not_kept.as_deref();
        trouble.filter(|trouble| self.seen_runs.as_deref() != Some(*trouble))
    }

    /// Whether there is anything to draw.
    pub(super) fn any(&self, heard: &Heard, view: &View) -> bool {
        let diverged = matches!(heard.state(), RunState::Diverged { .. });
        let said = self.failure.is_some() || self.lost.is_some() || self.not_kept(view).is_some();
        let runs = self.runs_not_kept(heard).is_some();
        diverged || said || runs || heard.looking || self.no_gpu(heard)
    }

    /// Draw them; nothing, most of the time.
    pub(super) fn show(
        &mut self,
        ui: &mut Ui,
        heard: &Heard,
        view: &mut View,
        out: &mut Vec<Command>,
    ) {
        if let RunState::Diverged {
            step,
            tensor,
            message,
            good,
        } = heard.state()
        {
            diverged(ui, (*step, tensor.as_deref(), message, *good), out);
        }
        if let Some(Answer::Failed(message)) = view.dialogs.take(Purpose::Export) {
            self.failure = Some(Failure {
                what: "export".into(),
                message,
                field: None,
            });
        }
        view.look_away |= looking::banner(ui, heard);
        self.failed(ui, heard, view, out);
        if let Some(message) = &self.lost {
            let edge = ui.visuals().warn_fg_color;
            if closing(ui, edge, "The device was lost", message) {
                self.lost = None;
            }
        }
        if let Some(trouble) = self.runs_not_kept(heard) {
            let dismissed = not_kept(ui, trouble, heard, out);
            self.seen_runs = dismissed
                .then(|| trouble.to_owned())
                .or(self.seen_runs.take());
        }
        if self.no_gpu(heard) {
            let edge = ui.visuals().widgets.noninteractive.bg_stroke.color;
            let text = "Braid trains on the processor: the small presets learn within a minute, larger models are slow. \
                        If this computer has a GPU, install its vendor's driver (on Linux also the Vulkan loader, \
                        libvulkan1), then start Braid again; `braid doctor` shows what it finds.";
            let text = self.no_gpu.as_deref().unwrap_or(text);
            self.seen_no_gpu = closing(ui, edge, "No GPU was found", text);
        }
        if let Some(message) = self.not_kept(view) {
            let edge = ui.visuals().warn_fg_color;
            if closing(ui, edge, "Presets and appearance are not kept", message) {
                self.seen_kept = Some(message.into());
            }
        }
    }

    fn failed(&mut self, ui: &mut Ui, heard: &Heard, view: &mut View, out: &mut Vec<Command>) {
        let Some(failure) = &self.failure else { return };
        let red = ui.visuals().error_fg_color;
        let mut done = false;
        theme::notice(ui, red, |ui| {
            ui.set_width(ui.available_width());
            let (title, next) = words(&failure.what);
            ui.label(RichText::new(title).color(red).strong());
            ui.label(&failure.message);
            if !next.is_empty() {
                ui.label(next);
            }
            ui.horizontal_wrapped(|ui| {
                if let Some(field) = &failure.field
                    && view.draft.edits.field(field).is_some()
                    && ui.button("Go to field").clicked()
                {
                    view.draft.go_to = Some(field.clone());
                    view.tab = Tab::Setup;
                    done = true;
                }
                if let Some(command) = again(&failure.what, heard)
                    && ui.button("Try again").clicked()
                {
                    out.push(command);
                    done = true;
                }
                if failure.what == "open" && ui.button("Choose another run").clicked() {
                    view.opening = true;
                    done = true;
                }
                if failure.what == "intervene" && ui.button("Show the interventions").clicked() {
                    (view.intervening, view.tab) = (true, Tab::Routing);
                    done = true;
                }
                let device = failure.field.is_none() && view.draft.device != "cpu";
                let cpu = match failure.what.as_str() {
                    "start" => "Start on the CPU",
                    _ => "Use the CPU",
                };
                if device
                    && ["start", "check"].contains(&failure.what.as_str())
                    && ui.button(cpu).clicked()
                {
                    view.draft.device = "cpu".into();
                    if failure.what == "start" {
                        view.draft.start(false, out);
                    }
                    done = true;
                }
                if ui.button("Show the log").clicked() {
                    view.log = true;
                }
                done |= ui.button("Dismiss").clicked();
            });
        });
        if done {
            self.failure = None;
        }
    }
}

/// What did not work, and what to do where that is not a button.
fn words(what: &str) -> (String, &'static str) {
    let (title, next) = match what {
        "list devices" => ("The devices could not be listed", ""),
        "check" => (
            "The configuration could not be looked at",
            "Choose another device in the setup.",
        ),
        "start" => ("The run could not be started", ""),
        "pause" => ("The run could not be paused", ""),
        "resume" => ("The run could not go on", ""),
        "step" => ("The step could not be made", ""),
        "stop" => (
            "The run could not be saved, so it was not closed",
            "Make room on the disk, then try again.",
        ),
        "set" => ("The field was not changed", ""),
        "stop conditions" => (
            "The stop conditions were not changed",
            "Set them again under \"until …\".",
        ),
        "save" => ("The checkpoint could not be written", ""),
        "open" => ("The run could not be opened", ""),
        "look at" => (
            "The run on disk could not be read",
            "What was read before is still shown. Choose the folder again under Open….",
        ),
        "import" => ("What was dropped or chosen cannot be used", ""),
        "delete" => ("The run was not deleted", ""),
        "list runs" => ("The runs could not be listed", ""),
        "history" => (
            "The run to compare with could not be read",
            "Choose the folder of another one under Compare.",
        ),
        "sample" => (
            "The text could not be written",
            "Change the prompt or the length under Samples, then press \"Write now\".",
        ),
        "trace" => (
            "The weights of this text could not be taken",
            "Change the text under Tokens, then ask again.",
        ),
        "intervene" => ("The effect of the edits could not be measured", ""),
        "rewind" => ("The run could not go back to its checkpoint", ""),
        "watch" => ("The share of time for routing frames was not changed", ""),
        "train" => (
            "The training stopped",
            "What was learnt is still in memory if the run is loaded: save it, or try to go on.",
        ),
        "engine" => (
            "The engine stopped",
            "Close this window and start Braid again; the run goes on from its last checkpoint.",
        ),
        "worker" => ("The engine stopped and was started again", ""),
        "export" => ("The file could not be written", ""),
        what => return (format!("This did not work: {what}"), ""),
    };
    (title.into(), next)
}

/// The command that asks for the same again, where it is known and has a chance.
fn again(what: &str, heard: &Heard) -> Option<Command> {
    let command = match what {
        "list devices" => return Some(Command::Devices),
        "pause" => Command::Pause,
        "resume" | "train" => Command::Resume,
        "step" => Command::Step,
        "stop" => Command::Stop,
        "save" => Command::Save,
        "rewind" => Command::Rewind { lr_factor: 0.5 },
        _ => return None,
    };
    heard.run.is_some().then_some(command)
}

/// A banner that can be put away; true when it is.
fn closing(ui: &mut Ui, edge: egui::Color32, title: &str, text: &str) -> bool {
    let mut closed = false;
    theme::notice(ui, edge, |ui| {
        ui.set_width(ui.available_width());
        Sides::new().shrink_left().truncate().show(
            ui,
            |ui| ui.strong(title),
            |ui| closed = ui.add(theme::small(ui, "Dismiss")).clicked(),
        );
        ui.add(egui::Label::new(text).wrap());
    });
    closed
}

/// Runs are not kept: what is there can be handed out. True when it was read.
fn not_kept(ui: &mut Ui, trouble: &str, heard: &Heard, out: &mut Vec<Command>) -> bool {
    let mut seen = false;
    theme::notice(ui, ui.visuals().warn_fg_color, |ui| {
        ui.set_width(ui.available_width());
        ui.strong("Runs are not kept");
        ui.add(egui::Label::new(trouble).wrap());
        ui.horizontal_wrapped(|ui| {
            if let Some(run) = &heard.run
                && ui.button("Download this run").clicked()
            {
                hand_out(&run.folder, Piece::Run, heard, out);
            }
            seen = ui.button("Dismiss").clicked();
        });
    });
    seen
}

/// Hand out a piece of a run; what the loaded one has learnt since its last checkpoint is saved first.
pub(super) fn hand_out(folder: &str, piece: Piece, heard: &Heard, out: &mut Vec<Command>) {
    let loaded = heard.run.as_ref().is_some_and(|run| run.folder == folder);
    if loaded && heard.is_unsaved() {
        out.push(Command::Save);
    }
    let folder = folder.to_owned();
    out.push(Command::Export { folder, piece });
}

fn diverged(
    ui: &mut Ui,
    (step, tensor, message, good): (u64, Option<&str>, &str, Option<u64>),
    out: &mut Vec<Command>,
) {
    let red = ui.visuals().error_fg_color;
    theme::notice(ui, red, |ui| {
        ui.set_width(ui.available_width());
        let title = format!(
            "The loss is not finite any more: stopped at step {}",
            grouped(step)
        );
        ui.label(RichText::new(title).color(red).strong());
        ui.label(message);
        if let Some(tensor) = tensor {
            ui.horizontal_wrapped(|ui| {
                ui.label("First tensor that is not finite:");
                ui.monospace(tensor);
            });
        }
        match good {
            Some(good) => {
                let text = format!(
                    "Rewind to step {} with half the learning rate",
                    grouped(good)
                );
                let text = RichText::new(text).color(egui::Color32::WHITE).strong();
                if ui
                    .add(egui::Button::new(text).fill(theme::ACCENT))
                    .clicked()
                {
                    out.push(Command::Rewind { lr_factor: 0.5 });
                }
            }
            None => {
                ui.label(
                    "There is no checkpoint to go back to: lower the learning rate, then restart.",
                );
            }
        }
    });
}
