//! One field: label, editor, unit, and what can be done with it.

use egui::{Align, DragValue, Label, Layout, RichText, TextEdit, Ui, vec2};
use toml::Value;

use crate::config::FieldKind;
use crate::form::{Field, Initial, Live, TASKS, plain, same_value};
use crate::protocol::Command;
use crate::ui::drafting::Drafting;
use crate::ui::heard::Heard;
use crate::ui::theme;

/// What an editor needs to know.
pub(super) struct Row<'a> {
    pub(super) heard: &'a Heard,
    pub(super) draft: &'a mut Drafting,
    pub(super) out: &'a mut Vec<Command>,
    /// The field at fault.
    pub(super) wrong: Option<&'a str>,
}

/// The words of the help.
fn help(field: &Field) -> String {
    let mut text = field.help.to_owned();
    if let Some(first) = text.get(..1) {
        text = first.to_uppercase() + &text[1..];
    }
    text = format!(
        "{text}.\n{} · {} · default: {}",
        field.key,
        field.range(),
        field.default_words()
    );
    if !field.unit.is_empty() {
        text += &format!(" · in {}", field.unit);
    }
    if !field.source.is_empty() {
        text += &format!("\n{}", field.source);
    }
    text
}

/// A value without TOML's quotes.
fn bare(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Float(number) => plain(*number),
        other => other.to_string(),
    }
}

impl Row<'_> {
    /// Draw one field.
    pub(super) fn show(&mut self, ui: &mut Ui, field: &Field) {
        let wrong = self.wrong == Some(field.key);
        let target = self.draft.go_to.as_deref() == Some(field.key);
        let error = ui.visuals().error_fg_color;
        let height = ui.spacing().interact_size.y;
        let row = ui.allocate_ui_with_layout(
            vec2(ui.available_width(), height),
            Layout::left_to_right(Align::Center),
            |ui| {
                let width = ui.available_width();
                let mut label = RichText::new(field.label);
                if wrong {
                    label = label.color(error);
                }
                let label_width = (0.4 * width).max(92.0);
                let label = ui
                    .scope(|ui| {
                        ui.set_width(label_width);
                        ui.add(Label::new(label).truncate())
                    })
                    .inner
                    .on_hover_text(help(field));
                let response = self.editor(ui, field, (0.3 * width).clamp(66.0, 150.0));
                if target {
                    response.request_focus();
                }
                response.labelled_by(label.id).on_hover_text(help(field));
                // Marks first: the unit takes what is left.
                ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                    self.marks(ui, field);
                    // Without room for a word, it is in the help.
                    if !field.unit.is_empty() && ui.available_width() > 34.0 {
                        ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                            let unit = RichText::new(field.unit).weak().small();
                            ui.add(Label::new(unit).truncate())
                                .on_hover_text(field.unit);
                        });
                    }
                });
            },
        );
        if wrong {
            let rect = row.response.rect.expand2(vec2(3.0, 1.0));
            let stroke = egui::Stroke::new(1.0, error);
            ui.painter()
                .rect_stroke(rect, 3.0, stroke, egui::StrokeKind::Outside);
        }
        if target {
            row.response.scroll_to_me(Some(Align::Center));
            self.draft.go_to = None;
        }
    }

    /// Reset, apply and lock, at the right edge.
    fn marks(&mut self, ui: &mut Ui, field: &Field) {
        if self.draft.edits.changed(field.key) {
            let reset = ui
                .add(theme::small(ui, "↺"))
                .on_hover_text(format!("Back to the default, {}", field.default_words()));
            reset.widget_info(|| {
                let name = format!("reset {}", field.label);
                egui::WidgetInfo::labeled(egui::Role::Button, true, name)
            });
            if reset.clicked() {
                self.draft.edits.reset(field.key);
            }
        }
        let Some(run) = &self.heard.run else { return };
        let running = run.values.iter().find(|(key, _)| key == field.key);
        let Some(own) = self.draft.effective(field.key, self.heard) else {
            return;
        };
        let own = own.to_string();
        let differs = running.is_none_or(|(_, value)| !same_value(value, &own));
        match field.live {
            Live::Safe if differs => {
                let apply = ui
                    .add(theme::small(ui, "apply"))
                    .on_hover_text("Use it from the next update on, without a new run");
                if apply.clicked() {
                    self.out.push(Command::Set {
                        key: field.key.into(),
                        value: own,
                    });
                }
            }
            Live::Locked(reason) if differs => {
                ui.label(RichText::new("locked").small().weak())
                    .on_hover_text(format!(
                        "Cannot change while training: {reason}. It counts when you restart."
                    ));
            }
            _ => {}
        }
    }

    fn editor(&mut self, ui: &mut Ui, field: &Field, width: f32) -> egui::Response {
        let key = field.key;
        let value = self.draft.effective(key, self.heard);
        let mut new = None;
        let response = match field.kind {
            FieldKind::Bool => {
                let mut on = value.and_then(|value| value.as_bool()).unwrap_or(false);
                let response = ui.checkbox(&mut on, "");
                response.changed().then(|| new = Some(Value::Boolean(on)));
                response
            }
            FieldKind::Choice(words) => {
                let current = value.as_ref().map(bare).unwrap_or_default();
                let combo = egui::ComboBox::from_id_salt(key)
                    .selected_text(&current)
                    .truncate()
                    .width(width);
                let shown = combo.show_ui(ui, |ui| {
                    for word in words {
                        let mut choice = ui.selectable_label(current == *word, *word);
                        if let Some((_, example)) = TASKS.iter().find(|task| task.0 == *word) {
                            choice = choice.on_hover_text(*example);
                        }
                        if choice.clicked() {
                            new = Some(Value::String((*word).into()));
                        }
                    }
                });
                shown.response
            }
            FieldKind::Int(low, high) if high < i64::MAX => {
                let mut number = value.and_then(|value| value.as_integer()).unwrap_or(low);
                let speed = (0.01 * number.abs() as f64).max(0.05);
                let drag = DragValue::new(&mut number)
                    .range(low..=high)
                    .clamp_existing_to_range(false)
                    .speed(speed);
                let response = ui.add_sized(vec2(width, ui.spacing().interact_size.y), drag);
                response
                    .changed()
                    .then(|| new = Some(Value::Integer(number)));
                response
            }
            FieldKind::Float {
                low,
                low_allowed,
                high,
                high_allowed,
            } => {
                let number = value.and_then(|v| v.as_float().or(v.as_integer().map(|n| n as f64)));
                let mut number = number.unwrap_or(low);
                let low = if low_allowed { low } else { low.next_up() };
                let high = if high_allowed { high } else { high.next_down() };
                let speed = (0.01 * number.abs()).max(1e-6);
                let drag = DragValue::new(&mut number)
                    .range(low..=high)
                    .clamp_existing_to_range(false)
                    .speed(speed)
                    .custom_formatter(|number, _| plain(digits(number, 6)))
                    .custom_parser(|text| text.trim().replace(',', ".").parse().ok());
                let response = ui.add_sized(vec2(width, ui.spacing().interact_size.y), drag);
                if response.changed() {
                    // What dragging gives is no more exact than four digits; what is typed is meant.
                    let number = if response.dragged() {
                        digits(number, 4)
                    } else {
                        number
                    };
                    new = Some(Value::Float(number));
                }
                response
            }
            FieldKind::Int(low, high) => {
                // More digits than a drag value can hold.
                let mut text = value.as_ref().map(bare).unwrap_or_default();
                let response = ui.add(
                    TextEdit::singleline(&mut text)
                        .align(theme::beginning(ui))
                        .desired_width(width - 8.0),
                );
                if let Ok(number) = text.trim().parse::<i64>()
                    && response.changed()
                    && (low..=high).contains(&number)
                {
                    new = Some(Value::Integer(number));
                }
                response
            }
            FieldKind::Text => {
                let mut text = value.as_ref().map(bare).unwrap_or_default();
                let response = ui.add(
                    TextEdit::singleline(&mut text)
                        .align(theme::beginning(ui))
                        .desired_width(width - 8.0),
                );
                response.changed().then(|| new = Some(Value::String(text)));
                response
            }
        };
        if let Some(value) = new {
            self.draft.edits.set(key, value);
        }
        let follows = matches!(field.default, Initial::Follows(_));
        if follows && !self.draft.edits.changed(key) {
            return response.on_hover_text("It follows from other fields until you set it");
        }
        response
    }
}

/// A number with so many digits.
fn digits(number: f64, count: usize) -> f64 {
    let text = format!("{number:.*e}", count - 1);
    text.parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dragged_numbers_have_few_digits() {
        assert_eq!(digits(0.001_234_56, 4), 0.001_235);
        assert_eq!(digits(1e-8, 4), 1e-8);
        assert_eq!(digits(0.95, 4), 0.95);
        assert_eq!(digits(0.0, 4), 0.0);
    }
}
