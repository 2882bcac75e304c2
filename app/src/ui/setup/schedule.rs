//! The learning rate over the schedule, as a thumbnail.

use egui::{Align2, FontId, Pos2, Rect, Sense, Shape, Stroke, Ui, pos2, vec2};

use crate::form::plain;
use crate::ui::format::grouped;

/// Draw it; `at` is the number of updates that a running model has done.
pub(super) fn show(ui: &mut Ui, schedule: &[(f64, f64)], at: Option<f64>) {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), 58.0), Sense::hover());
    let steps = schedule.last().map_or(1.0, |last| last.0).max(1.0);
    let top = schedule.iter().map(|point| point.1).fold(0.0, f64::max);
    let peak = schedule.iter().find(|point| point.1 == top);
    response.widget_info(|| {
        let end = schedule.last().map_or(0.0, |last| last.1);
        let text = format!(
            "learning rate: at most {}, at the end {}, over {} steps",
            plain(digits(top)),
            plain(digits(end)),
            grouped(steps as u64)
        );
        egui::WidgetInfo::labeled(egui::Role::Image, true, text)
    });
    let visuals = ui.visuals();
    let (grey, weak) = (
        visuals.widgets.noninteractive.bg_stroke,
        visuals.weak_text_color(),
    );
    let font = FontId::proportional(10.0);
    let inner = Rect::from_min_max(rect.min + vec2(2.0, 14.0), rect.max - vec2(2.0, 13.0));
    let painter = ui.painter_at(rect);
    painter.rect_stroke(inner, 2.0, grey, egui::StrokeKind::Outside);
    if schedule.len() < 2 || top <= 0.0 {
        painter.text(
            inner.center(),
            Align2::CENTER_CENTER,
            "no schedule yet",
            font,
            weak,
        );
        return;
    }
    let place = |(step, rate): (f64, f64)| -> Pos2 {
        let x = inner.left() + (step / steps) as f32 * inner.width();
        pos2(
            x,
            inner.bottom() - (rate / top) as f32 * (inner.height() - 2.0),
        )
    };
    let line = schedule.iter().copied().map(place).collect();
    painter.add(Shape::line(line, Stroke::new(1.5, visuals.text_color())));
    if let Some(step) = at {
        let x = place((step.min(steps), 0.0)).x;
        painter.vline(
            x,
            inner.y_range(),
            Stroke::new(1.0, super::super::theme::ACCENT),
        );
    }
    let label = format!("learning rate, at most {}", plain(digits(top)));
    painter.text(rect.left_top(), Align2::LEFT_TOP, label, font.clone(), weak);
    let end = format!("{} steps", grouped(steps as u64));
    painter.text(
        rect.right_bottom(),
        Align2::RIGHT_BOTTOM,
        end,
        font.clone(),
        weak,
    );
    if let Some((step, _)) = peak
        && *step > 1.0
    {
        let text = format!("peak at {}", grouped(*step as u64));
        painter.text(rect.left_bottom(), Align2::LEFT_BOTTOM, text, font, weak);
    }
    if let Some(pointer) = response.hover_pos() {
        let step = f64::from((pointer.x - inner.left()) / inner.width()) * steps;
        let nearest = schedule
            .iter()
            .min_by(|a, b| (a.0 - step).abs().total_cmp(&(b.0 - step).abs()));
        if let Some(&(step, rate)) = nearest {
            painter.circle_filled(place((step, rate)), 2.5, super::super::theme::ACCENT);
            response.on_hover_text(format!(
                "step {}: learning rate {}",
                grouped(step as u64),
                plain(digits(rate))
            ));
        }
    }
}

fn digits(number: f64) -> f64 {
    format!("{number:.2e}").parse().unwrap_or(number)
}
