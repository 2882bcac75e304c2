//! How far the run is, and how long it will take.

use egui::{Rect, RichText, Sense, Ui, vec2};

use crate::protocol::RunState;
use crate::report::duration;
use crate::ui::format::grouped;
use crate::ui::heard::Heard;

/// `step 1,240 / 5,000`, a bar, and the time that is left.
pub(super) fn show(ui: &mut Ui, width: f32, heard: &Heard) {
    let steps = heard.subject().map_or(0, |run| run.steps);
    let step = heard.step;
    let left = steps.saturating_sub(step) as f64 * heard.timing.step / 1e3;
    let word = match heard.state() {
        RunState::Empty if heard.looking => "on disk".to_owned(),
        RunState::Empty => "not started".to_owned(),
        RunState::Preparing { stage, done, of } if *of > 0 => format!("{stage} {done}/{of}"),
        RunState::Preparing { stage, .. } => stage.clone(),
        RunState::Running if left > 0.0 => format!("{} left", duration(left.round())),
        RunState::Running => "training".into(),
        RunState::Paused => "paused".into(),
        RunState::Finished => "finished".into(),
        RunState::Diverged { .. } => "stopped".into(),
    };
    let loaded = heard.subject().is_some();
    let text = if loaded {
        format!("step {} / {}", grouped(step), grouped(steps))
    } else {
        "step —".to_owned()
    };
    let size = vec2(width, 32.0);
    ui.allocate_ui_with_layout(size, egui::Layout::top_down(egui::Align::Min), |ui| {
        ui.set_width(width);
        ui.spacing_mut().item_spacing.y = 2.0;
        egui::Sides::new()
            .height(16.0)
            .shrink_right()
            .truncate()
            .show(
                ui,
                |ui| ui.label(text),
                |ui| {
                    ui.label(RichText::new(&word).small().weak())
                        .on_hover_text(&word);
                },
            );
        let share = if steps == 0 {
            0.0
        } else {
            step as f32 / steps as f32
        };
        bar(ui, width, share);
    });
}

/// Nothing done is nothing painted.
fn bar(ui: &mut Ui, width: f32, share: f32) {
    let (rect, response) = ui.allocate_exact_size(vec2(width, 4.0), Sense::hover());
    response.widget_info(|| {
        let text = format!("progress {:.0} %", 100.0 * share);
        egui::WidgetInfo::labeled(egui::Role::ProgressIndicator, true, text)
    });
    let grey = ui.visuals().widgets.inactive.bg_fill;
    ui.painter().rect_filled(rect, 2.0, grey);
    let done = Rect::from_min_size(rect.min, vec2(share.clamp(0.0, 1.0) * width, rect.height()));
    ui.painter()
        .rect_filled(done, 2.0, crate::ui::theme::ACCENT);
}
