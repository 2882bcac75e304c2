//! The learning rate: of the draft, or of the running model.

use egui::{DragValue, Slider, Ui};
use toml::Value;

use crate::form::plain;
use crate::protocol::Command;
use crate::ui::heard::Heard;
use crate::ui::view::View;

const KEY: &str = "train.lr";
const LOW: f64 = 1e-6;
const HIGH: f64 = 1.0;

/// A value that is being dragged and not yet sent.
#[derive(Debug, Default)]
pub(super) struct Rate {
    dragged: Option<f64>,
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

/// Three digits: what a slider gives is no more exact than that.
fn rounded(rate: f64) -> f64 {
    number(&format!("{rate:.2e}")).unwrap_or(rate)
}

impl Rate {
    /// `width` is that of the slider; none without.
    pub(super) fn show(
        &mut self,
        ui: &mut Ui,
        width: f32,
        heard: &Heard,
        view: &mut View,
        out: &mut Vec<Command>,
    ) {
        let running = heard.run.as_ref().and_then(|run| {
            let value = run.values.iter().find(|(key, _)| key == KEY);
            value.and_then(|(_, value)| number(value))
        });
        let draft = view
            .draft
            .edits
            .value(KEY)
            .and_then(|value| value.as_float());
        let own = running.or(draft).unwrap_or(1e-3);
        let mut rate = self.dragged.unwrap_or(own);
        // The hint says which rate it is where there is no room.
        let label = ui.label(if width < 80.0 { "lr" } else { "peak lr" });
        let now = heard.series.lr.last().map(|point| point.value);
        let hint = match (running, now) {
            (Some(_), Some(now)) => format!(
                "The largest learning rate of the schedule, which is at {} now. A change counts from the next update on; the curves mark it.",
                plain(rounded(now))
            ),
            _ => "The largest learning rate of the schedule".to_owned(),
        };
        let mut moving = false;
        if width > 0.0 {
            ui.spacing_mut().slider_width = width;
            let slider = Slider::new(&mut rate, LOW..=HIGH)
                .logarithmic(true)
                .clamping(egui::SliderClamping::Never)
                .show_value(false);
            let slider = ui.add(slider).labelled_by(label.id).on_hover_text(&hint);
            if slider.changed() {
                rate = rounded(rate);
            }
            moving = slider.dragged();
        }
        let entry = DragValue::new(&mut rate)
            .range(f64::MIN_POSITIVE..=1e12)
            .speed(0.01 * own.abs().max(1e-9))
            .update_while_editing(false)
            .custom_formatter(|rate, _| plain(rounded(rate)))
            .custom_parser(|text| number(&text.replace(',', ".")));
        let size = egui::vec2(58.0, ui.spacing().interact_size.y);
        let entry = ui
            .add_sized(size, entry)
            .labelled_by(label.id)
            .on_hover_text(&hint);
        if entry.dragged() {
            rate = rounded(rate);
        }
        if moving || entry.dragged() {
            self.dragged = Some(rate);
        } else if rate != own {
            self.dragged = None;
            view.draft.edits.set(KEY, Value::Float(rate));
            if running.is_some() {
                out.push(Command::Set {
                    key: KEY.into(),
                    value: format!("{rate:e}"),
                });
            }
        } else {
            self.dragged = None;
        }
    }
}
