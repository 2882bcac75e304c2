//! When to pause by itself.

use egui::{DragValue, Popup, PopupCloseBehavior, RichText, Ui};

use crate::protocol::Command;
use crate::ui::format::grouped;
use crate::ui::heard::{self, Heard};

/// What is asked for; what is in force is heard.
#[derive(Debug)]
pub(super) struct Goal {
    step: (bool, u64),
    val_loss: (bool, f64),
    seconds: (bool, f64),
}

impl Default for Goal {
    fn default() -> Self {
        Self {
            step: (false, 500),
            val_loss: (false, 1.0),
            seconds: (false, 60.0),
        }
    }
}

/// `at step 500 or at a validation loss of 1`; nothing if it runs to the end of the schedule.
fn words(goal: &heard::Goal) -> Option<String> {
    let words: Vec<String> = [
        goal.step.map(|step| format!("at step {}", grouped(step))),
        goal.val_loss
            .map(|loss| format!("at a validation loss of {loss}")),
        goal.seconds
            .map(|seconds| format!("{seconds} s after it was set")),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!words.is_empty()).then(|| words.join(" or "))
}

impl Goal {
    pub(super) fn show(&mut self, ui: &mut Ui, heard: &Heard, out: &mut Vec<Command>) {
        let text = RichText::new("until …");
        let set = words(&heard.goal);
        let hint = match &set {
            None => "Pause by itself: at a step, a validation loss or after a time".to_owned(),
            Some(set) => format!("Pauses {set}"),
        };
        let button = egui::Button::new(text).selected(set.is_some());
        let button = ui.add(button).on_hover_text(hint);
        button.widget_info(|| {
            egui::WidgetInfo::selected(egui::Role::Button, true, set.is_some(), "stop conditions")
        });
        Popup::from_toggle_button_response(&button)
            .close_behavior(PopupCloseBehavior::CloseOnClickOutside)
            .show(|ui| {
                ui.set_width(250.0);
                ui.strong("Pause at whichever comes first");
                egui::Grid::new("goal").num_columns(3).show(ui, |ui| {
                    ui.checkbox(&mut self.step.0, "step");
                    let drag = DragValue::new(&mut self.step.1).range(1..=1_000_000_000u64);
                    ui.add(drag).accessible_name("step to pause at");
                    ui.weak("updates in all");
                    ui.end_row();
                    ui.checkbox(&mut self.val_loss.0, "validation loss");
                    let drag = DragValue::new(&mut self.val_loss.1);
                    ui.add(drag.range(0.0..=100.0).speed(0.01))
                        .accessible_name("validation loss to pause at");
                    ui.weak("nats, at most");
                    ui.end_row();
                    ui.checkbox(&mut self.seconds.0, "time");
                    let drag = DragValue::new(&mut self.seconds.1);
                    ui.add(drag.range(1.0..=1e7).speed(1.0))
                        .accessible_name("seconds until it pauses");
                    ui.weak("seconds from now");
                    ui.end_row();
                });
                ui.horizontal(|ui| {
                    let some = self.step.0 || self.val_loss.0 || self.seconds.0;
                    let set = ui.add_enabled(some, egui::Button::new("Set"));
                    if set
                        .on_disabled_hover_text("Choose one of the conditions")
                        .clicked()
                    {
                        self.send(out);
                    }
                    if ui
                        .button("Never")
                        .on_hover_text("Go on to the end of the schedule")
                        .clicked()
                    {
                        out.push(Command::Until {
                            step: None,
                            val_loss: None,
                            seconds: None,
                        });
                    }
                });
                ui.weak(match &set {
                    None => "Nothing is set: it runs to the end of the schedule.".to_owned(),
                    Some(set) => format!("It pauses {set}."),
                });
            });
    }

    fn send(&self, out: &mut Vec<Command>) {
        let chosen = |(on, value): (bool, f64)| on.then_some(value);
        out.push(Command::Until {
            step: self.step.0.then_some(self.step.1),
            val_loss: chosen(self.val_loss),
            seconds: chosen(self.seconds),
        });
    }
}
