//! The controls that all charts share: axes, smoothing, the whole; and the words of an empty chart.

use egui::text::LayoutJob;
use egui::{Align, Button, RichText, Role, Sense, Slider, TextStyle, Ui, WidgetInfo};

use super::view::{Axis, View};

/// Draw them on two lines. `place` tells the controls of several panels apart; `depths`: gradient norms of single sublayers
/// are known.
pub(super) fn show(ui: &mut Ui, view: &mut View, place: &str, depths: bool) {
    ui.push_id(place, |ui| {
        ui.horizontal_wrapped(|ui| {
            ui.spacing_mut().item_spacing.x = 4.0;
            let before = view.axis;
            for (axis, name, help) in [
                (Axis::Step, "step", "Updates done"),
                (Axis::Tokens, "tokens", "Tokens seen"),
                (Axis::Time, "time", "Time spent training; pauses do not count"),
            ] {
                let name = RichText::new(name).small();
                ui.selectable_value(&mut view.axis, axis, name).on_hover_text(help);
            }
            if view.axis != before {
                // Units differ: the part that was looked at means nothing now.
                (view.scales.range, view.cursor) = (None, None);
            }
            ui.separator();
            let scales = &mut view.scales;
            ui.toggle_value(&mut scales.log_x, RichText::new("log x").small())
                .on_hover_text("Logarithmic horizontal axis");
            ui.toggle_value(&mut scales.log_y, RichText::new("log y").small())
                .on_hover_text("Logarithmic losses and norms");
            if depths {
                let help = "The gradient norm of each sublayer's parameters, where a frame was recorded, instead of the total";
                ui.toggle_value(&mut scales.per_depth, RichText::new("per depth").small()).on_hover_text(help);
            }
        });
        ui.horizontal(|ui| {
            let label = ui.label(RichText::new("smooth").small());
            ui.spacing_mut().slider_width = (ui.available_width() - 128.0).clamp(30.0, 140.0);
            let slider = Slider::new(&mut view.scales.smooth, 1.0..=1000.0)
                .logarithmic(true)
                .integer()
                .suffix(" updates");
            let help = "Exponential moving average over about so many updates; 1: as recorded";
            ui.add(slider).on_hover_text(help).labelled_by(label.id);
            // Always there, so that nothing moves when a part is selected.
            let whole = Button::new(RichText::new("all").small());
            let help = "Show the whole training (or double-click in a chart; drag in a chart to look at a part)";
            let whole = ui.add_enabled(view.scales.range.is_some(), whole);
            if whole.on_hover_text(help).on_disabled_hover_text("Drag in a chart to look at a part of it").clicked() {
                view.scales.range = None;
            }
        });
    });
}

/// Words in the middle of an empty place.
pub(super) fn empty(ui: &mut Ui, words: &str, height: f32) {
    let size = egui::vec2(ui.available_width(), height.max(40.0));
    let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
    let font = TextStyle::Body.resolve(ui.style());
    let colour = ui.visuals().weak_text_color();
    let mut job = LayoutJob::simple(words.to_owned(), font, colour, 0.85 * size.x);
    job.halign = Align::Center;
    let galley = ui.painter().layout_job(job);
    let at = egui::pos2(rect.center().x, rect.center().y - galley.size().y / 2.0);
    ui.painter().galley(at, galley, colour);
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, words));
}
