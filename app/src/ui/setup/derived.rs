//! What follows from the draft: parameters, memory, tokens, or why it cannot run.

use egui::{Rect, RichText, Sense, Ui, vec2};

use crate::protocol::{Derived, FieldError};
use crate::ui::drafting::Drafting;
use crate::ui::format::{bytes, grouped, percent};
use crate::ui::heard::Heard;
use crate::ui::theme;

/// Draw it. `short`: two lines, and the rest on hover.
pub(super) fn show(ui: &mut Ui, heard: &Heard, draft: &mut Drafting, short: bool) {
    if let Some(error) = draft.error(heard) {
        wrong(ui, &error, draft);
        return;
    }
    let derived = heard
        .checked
        .as_ref()
        .and_then(|checked| checked.derived.as_ref());
    match derived {
        Some(derived) => figures(ui, derived, short),
        None => {
            ui.weak("Looking at the configuration …");
        }
    }
}

fn wrong(ui: &mut Ui, error: &FieldError, draft: &mut Drafting) {
    let red = ui.visuals().error_fg_color;
    theme::notice(ui, red, |ui| {
        ui.set_width(ui.available_width());
        ui.label(RichText::new("This cannot run yet").color(red).strong());
        ui.label(&error.message);
        let Some(field) = &error.field else { return };
        if let Some(row) = draft.edits.field(field) {
            if ui.button(format!("Go to field: {}", row.label)).clicked() {
                draft.go_to = Some(field.clone());
            }
        } else if draft.edits.get(field).is_some() && ui.button(format!("Remove {field}")).clicked()
        {
            draft.edits.reset(field);
        }
    });
}

fn figures(ui: &mut Ui, derived: &Derived, short: bool) {
    let total: u64 = derived.parameters.iter().map(|part| part.numbers).sum();
    pair(ui, "Parameters", &grouped(total));
    let parts: Vec<(String, f64, String)> = derived
        .parameters
        .iter()
        .map(|part| {
            let share = part.numbers as f64 / total.max(1) as f64;
            let share_text = if share < 0.005 {
                "< 1 %".into()
            } else {
                percent(share)
            };
            let text = format!("{}: {} ({share_text})", part.name, grouped(part.numbers));
            (part.name.clone(), share, text)
        })
        .collect();
    bar(ui, "parameters by part", &parts, !short);
    let memory: u64 = derived.memory.iter().map(|part| part.1).sum();
    let limit = derived.memory_limit;
    let of = limit.map_or(String::new(), |limit| format!(" of {}", bytes(limit)));
    let row = pair(ui, "Memory", &format!("{}{of}", bytes(memory)));
    let mut lines: Vec<String> = derived
        .memory
        .iter()
        .map(|(name, size)| format!("{name}: {}", bytes(*size)))
        .collect();
    if let Some((name, size)) = &derived.largest {
        lines.push(format!("largest tensor: {name}, {}", bytes(*size)));
    }
    if short {
        let tokens = grouped(derived.tokens_per_step);
        let calls = grouped(derived.kernel_calls);
        lines.push(format!(
            "tokens per step: {tokens}\nkernel calls per step: {calls}"
        ));
    }
    row.on_hover_text(lines.join("\n"));
    if limit.is_some_and(|limit| memory > limit) {
        let red = ui.visuals().error_fg_color;
        let text =
            "More than the device has: lower batch, context or width, or recompute activations.";
        ui.label(RichText::new(text).color(red));
    }
    if short {
        return;
    }
    pair(ui, "Tokens per step", &grouped(derived.tokens_per_step));
    pair(ui, "Kernel calls per step", &grouped(derived.kernel_calls));
    if let Some(least) = derived.least_tokens {
        pair(
            ui,
            "Smallest usable text",
            &format!("{} tokens", grouped(least)),
        );
    }
    ui.add(egui::Label::new(RichText::new(&derived.data).weak().small()).truncate())
        .on_hover_text(format!(
            "{}; a vocabulary of {}",
            derived.data,
            grouped(u64::from(derived.vocab))
        ));
}

/// Name left, figure right.
fn pair(ui: &mut Ui, name: &str, figure: &str) -> egui::Response {
    let sides = egui::Sides::new().shrink_left().truncate();
    let inner = sides.show(ui, |ui| ui.weak(name), |ui| ui.label(figure));
    inner.0.union(inner.1)
}

/// Shares of a whole, side by side.
fn bar(ui: &mut Ui, what: &str, parts: &[(String, f64, String)], legend: bool) {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), 8.0), Sense::hover());
    let mut left = rect.left();
    for (index, (_, share, _)) in parts.iter().enumerate() {
        let width = *share as f32 * rect.width();
        let part = Rect::from_min_size(egui::pos2(left, rect.top()), vec2(width, rect.height()));
        let color = theme::PARTS[index % theme::PARTS.len()];
        ui.painter()
            .rect_filled(part.shrink2(vec2(0.25, 0.0)), 0.0, color);
        left += width;
    }
    let lines: Vec<&str> = parts.iter().map(|part| part.2.as_str()).collect();
    let text = lines.join("\n");
    response.widget_info(|| {
        egui::WidgetInfo::labeled(
            egui::Role::Image,
            true,
            format!("{what}: {}", lines.join(", ")),
        )
    });
    response.on_hover_text(text);
    if !legend {
        return;
    }
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing = vec2(4.0, 0.0);
        for (index, (name, share, text)) in parts.iter().enumerate() {
            let color = theme::PARTS[index % theme::PARTS.len()];
            // One that cannot be seen in the bar needs no word, but for the one that this is about.
            if *share < 0.02 && name != "routing" {
                continue;
            }
            let (dot, _) = ui.allocate_exact_size(vec2(7.0, 7.0), Sense::hover());
            ui.painter().rect_filled(dot, 1.0, color);
            ui.label(RichText::new(name).small().weak())
                .on_hover_text(text);
        }
    });
}
