//! Panel: device, speed, memory.

use egui::{Align, Label, Layout, RichText, Ui};

use super::diagnostics;
use super::format::{bytes, grouped, short};
use super::heard::{Heard, Level};
use super::theme;
use super::view::View;
use crate::protocol::Command;

/// Its own state.
#[derive(Debug, Default)]
pub(super) struct Status {
    /// When the diagnostics were copied.
    copied: Option<f64>,
    /// The last checkpoint, and when it was first heard of, in seconds of the window's clock.
    saved: Option<(u64, f64)>,
}

impl Status {
    /// Draw it.
    pub(super) fn show(
        &mut self,
        ui: &mut Ui,
        heard: &Heard,
        view: &mut View,
        out: &mut Vec<Command>,
    ) {
        let _ = out;
        let age = self.age(ui, heard);
        // The buttons first: the facts take what is left.
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            self.buttons(ui, heard, view);
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                for (at, (words, hint)) in facts(heard, view, age).into_iter().enumerate() {
                    if ui.available_width() < 24.0 {
                        break;
                    }
                    if at > 0 {
                        ui.weak("·");
                    }
                    let label = Label::new(RichText::new(words).small()).truncate();
                    ui.add(label).on_hover_text(hint);
                }
            });
        });
    }

    /// Draw the facts alone, as many as have room: log and diagnostics are in the menu.
    pub(super) fn brief(&mut self, ui: &mut Ui, heard: &Heard, view: &View) {
        let facts = facts(heard, view, self.age(ui, heard));
        let words: Vec<&str> = facts.iter().map(|(words, _)| words.as_str()).collect();
        let hints: Vec<String> = facts
            .iter()
            .map(|(words, hint)| {
                if words == hint {
                    hint.clone()
                } else {
                    format!("{words}: {hint}")
                }
            })
            .collect();
        let line = Label::new(RichText::new(words.join(" · ")).small()).truncate();
        // A line of text is low for a finger.
        let height = if theme::is_touch(ui) { 30.0 } else { 16.0 };
        let size = egui::vec2(ui.available_width(), height);
        ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
            ui.set_min_height(height);
            ui.add(line).on_hover_text(hints.join("\n"));
        });
    }

    /// Seconds since the last checkpoint was heard of.
    fn age(&mut self, ui: &Ui, heard: &Heard) -> Option<f64> {
        let now = ui.input(|input| input.time);
        let step = heard.saved.as_ref().map(|(step, _)| *step);
        if self.saved.map(|(step, _)| step) != step {
            self.saved = step.map(|step| (step, now));
        }
        if self.saved.is_some() {
            ui.ctx().request_repaint_after_secs(30.0);
        }
        self.saved.map(|(_, at)| now - at)
    }

    fn buttons(&mut self, ui: &mut Ui, heard: &Heard, view: &mut View) {
        let now = ui.input(|input| input.time);
        let copied = self.copied.is_some_and(|at| now - at < 2.0);
        let name = if copied { "copied" } else { "diagnostics" };
        let button = theme::small(ui, name).min_size(egui::vec2(74.0, 0.0));
        let button = ui.add(button).on_hover_text(
            "Copy version, devices, configuration and the last errors: for a bug report",
        );
        button.widget_info(|| {
            egui::WidgetInfo::labeled(egui::Role::Button, true, "copy diagnostics")
        });
        if button.clicked() {
            ui.ctx().copy_text(diagnostics::text(heard, view));
            ui.ctx().request_repaint_after_secs(2.1);
            self.copied = Some(now);
        }
        let errors = heard.log.iter().filter(|entry| entry.level == Level::Error);
        let label = match errors.count() {
            0 => RichText::new("log"),
            1 => RichText::new("log (1 error)").color(ui.visuals().error_fg_color),
            n => RichText::new(format!("log ({n} errors)")).color(ui.visuals().error_fg_color),
        };
        let button = egui::Button::selectable(view.log, label.small());
        if ui.add(button).clicked() {
            view.log = !view.log;
        }
    }
}

/// Words and what they mean. `age`: seconds since the last checkpoint was heard of.
fn facts(heard: &Heard, view: &View, age: Option<f64>) -> Vec<(String, String)> {
    let Some(run) = &heard.run else {
        let device = match view.draft.device.as_str() {
            "auto" if heard.auto.is_empty() => "looking for devices …".to_owned(),
            "auto" => heard.auto.clone(),
            choice => {
                let found = heard.devices.iter().find(|device| device.choice == choice);
                found.map_or_else(|| choice.to_owned(), |device| device.name.clone())
            }
        };
        return vec![(device.clone(), device)];
    };
    let timing = heard.timing;
    let speed = heard.series.speed.last().map(|point| point.value);
    let speed = speed.filter(|speed| speed.is_finite());
    let speed = speed.map_or("—".into(), short);
    let step = if timing.step > 0.0 {
        format!(
            "step {} ms: device {}, host {}, window {}",
            milliseconds(timing.step),
            milliseconds(timing.device),
            milliseconds(timing.host),
            milliseconds(view.paint)
        )
    } else {
        format!("step — ms, window {}", milliseconds(view.paint))
    };
    let mut facts = vec![
        (run.device.clone(), run.device.clone()),
        (
            format!("{speed} tok/s"),
            "Tokens per second of training, lately".into(),
        ),
        (
            step,
            format!(
                "Where the time of one update goes, in milliseconds: waiting for the device, writing batches and records, \
                 and painting this window (once a frame, at the same time). One routing frame takes {} ms.",
                milliseconds(timing.frame)
            ),
        ),
        memory(timing.memory, run.bytes),
    ];
    if let (Some((step, path)), Some(age)) = (&heard.saved, age) {
        // What was saved by an earlier process, nobody knows when.
        let words = match path {
            Some(_) => format!("saved {}", ago(age)),
            None => format!("saved at step {}", grouped(*step)),
        };
        let place = path
            .as_ref()
            .map_or_else(String::new, |path| format!(", {path}"));
        let by_time = match view.beside.autosave {
            Some(seconds) => format!(
                "Another one is written when it is {:.0} min old.",
                seconds / 60.0
            ),
            None => "None is written by time.".to_owned(),
        };
        let hint = format!(
            "Last checkpoint: step {}{place}. {by_time} See Menu.",
            grouped(*step)
        );
        facts.push((words, hint));
    }
    facts
}

/// What the process uses, where the system says so; else what the run allocated. With a sentence.
fn memory(used: Option<u64>, allocated: u64) -> (String, String) {
    let words = format!("{} of buffers for the run, on its device", bytes(allocated));
    match used {
        Some(used) => (
            format!("process {}", bytes(used)),
            format!("Memory of this process, the window included. It allocated {words}."),
        ),
        None => (
            format!("run {}", bytes(allocated)),
            format!("The run allocated {words}."),
        ),
    }
}

/// `just now`, `3 min ago`
fn ago(seconds: f64) -> String {
    match seconds {
        s if s < 60.0 => "just now".into(),
        s if s < 3600.0 => format!("{:.0} min ago", (s / 60.0).floor()),
        s => format!("{:.0} h ago", (s / 3600.0).floor()),
    }
}

/// `0.4`, `18`
fn milliseconds(number: f64) -> String {
    if number < 9.95 {
        format!("{number:.1}")
    } else {
        format!("{number:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::{ago, memory};

    #[test]
    fn memory_and_age_are_said_in_words() {
        assert_eq!(memory(Some(412_000_000), 80_000_000).0, "process 412.0 MB");
        assert_eq!(memory(None, 80_000_000).0, "run 80.0 MB");
        assert_eq!(
            [59.0, 60.0, 3599.0, 7300.0].map(ago),
            ["just now", "1 min ago", "59 min ago", "2 h ago"]
        );
    }
}
