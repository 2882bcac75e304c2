//! When to pause by itself.

use egui::{DragValue, Popup, PopupCloseBehavior, RichText, Ui};

use crate::protocol::Command;
use crate::ui::heard::Heard;

/// What is asked for, and what was sent.
#[derive(Debug)]
pub(super) struct Goal {
    step: (bool, u64),
    val_loss: (bool, f64),
    seconds: (bool, f64),
    /// In words.
    set: Option<String>,
}

impl Default for Goal {
    fn default() -> Self {
        Self {
            step: (false, 500),
            val_loss: (false, 1.0),
            seconds: (false, 60.0),
            set: None,
        }
    }
}

impl Goal {
    pub(super) fn show(&mut self, ui: &mut Ui, heard: &Heard, out: &mut Vec<Command>) {
        let text = RichText::new("until …");
        let hint = match &self.set {
            None => "Pause by itself: at a step, a validation loss or after a time".to_owned(),
            Some(set) => format!("Pauses {set}"),
        };
        let button = egui::Button::new(text).selected(self.set.is_some());
        let button = ui.add(button).on_hover_text(hint);
        button.widget_info(|| {
            let selected = self.set.is_some();
            egui::WidgetInfo::selected(egui::Role::Button, true, selected, "stop conditions")
        });
        Popup::from_toggle_button_response(&button)
            .close_behavior(PopupCloseBehavior::CloseOnClickOutside)
            .show(|ui| {
                ui.set_width(250.0);
                ui.strong("Pause at whichever comes first");
                egui::Grid::new("goal").num_columns(3).show(ui, |ui| {
                    ui.checkbox(&mut self.step.0, "step");
                    ui.add(DragValue::new(&mut self.step.1).range(1..=1_000_000_000u64));
                    ui.weak("updates in all");
                    ui.end_row();
                    ui.checkbox(&mut self.val_loss.0, "validation loss");
                    let drag = DragValue::new(&mut self.val_loss.1);
                    ui.add(drag.range(0.0..=100.0).speed(0.01));
                    ui.weak("nats, at most");
                    ui.end_row();
                    ui.checkbox(&mut self.seconds.0, "time");
                    let drag = DragValue::new(&mut self.seconds.1);
                    ui.add(drag.range(1.0..=1e7).speed(1.0));
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
                        self.send(heard, out);
                    }
                    if ui
                        .button("Never")
                        .on_hover_text("Go on to the end of the schedule")
                        .clicked()
                    {
                        self.set = None;
                        out.push(Command::Until {
                            step: None,
                            val_loss: None,
                            seconds: None,
                        });
                    }
                });
                ui.weak(match &self.set {
                    None => "Nothing is set: it runs to the end of the schedule.".to_owned(),
                    Some(set) => format!("It pauses {set}."),
                });
            });
    }

    fn send(&mut self, heard: &Heard, out: &mut Vec<Command>) {
        let _ = heard;
        let chosen = |(on, value): (bool, f64)| on.then_some(value);
        let step = self.step.0.then_some(self.step.1);
        let (val_loss, seconds) = (chosen(self.val_loss), chosen(self.seconds));
        let words: Vec<String> = [
            step.map(|step| format!("at step {step}")),
            val_loss.map(|loss| format!("at a validation loss of {loss}")),
            seconds.map(|seconds| format!("{seconds} s after it was set")),
        ]
        .into_iter()
        .flatten()
        .collect();
        self.set = Some(words.join(" or "));
        out.push(Command::Until {
            step,
            val_loss,
            seconds,
        });
    }
}
