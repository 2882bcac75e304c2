//! Panel: recorded frames over training time.

use egui::{
    Align2, Button, EventFilter, FontId, Key, Label, Modifiers, Rect, Response, RichText, Role,
    Sense, Shape, Stroke, Ui, WidgetInfo, pos2, vec2,
};
use web_time::Duration;

use super::format::grouped;
use super::heard::{Curve, Heard};
use super::routing::nearest;
use super::theme::ACCENT;
use super::ticks::far_end;
use super::view::{Moment, View};
use crate::protocol::{Command, Frame};

/// Height of the track: frames above, the loss below.
const TRACK: f32 = 46.0;
/// Of it: marks of frames.
const MARKS: f32 = 10.0;
/// A replay takes about so many seconds, but shows no frame shorter or longer than these.
const REPLAY: f64 = 12.0;
const SHORTEST: f64 = 0.04;
const LONGEST: f64 = 0.35;

/// Its own state.
#[derive(Debug, Default)]
pub struct Scrubber {
    /// When the next frame of a replay is due, in seconds of the window's clock.
    due: Option<f64>,
    /// Place and step of the frame that is held: frames are thinned, so its place may change.
    held: Option<(usize, u64)>,
}

/// The last frame, one earlier, one later, ..
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Jump {
    First,
    Back,
    Next,
    Last,
}

/// What is drawn on a button: the fonts have no such signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    First,
    Back,
    Play,
    Pause,
    Next,
    Last,
}

impl Sign {
    /// Draw the button; whether it was pressed.
    fn button(self, ui: &mut Ui, name: &str) -> bool {
        let side = ui.spacing().interact_size.y;
        let width = (1.3 * side).min(38.0);
        let (rect, response) = ui.allocate_exact_size(vec2(width, side), Sense::click());
        let enabled = ui.is_enabled();
        response.widget_info(|| WidgetInfo::labeled(Role::Button, enabled, name));
        let visuals = ui.style().interact(&response);
        let painter = ui.painter();
        painter.rect(
            rect.expand(visuals.expansion),
            visuals.corner_radius,
            visuals.weak_bg_fill,
            visuals.bg_stroke,
            egui::StrokeKind::Inside,
        );
        let (c, r, colour) = (rect.center(), 0.24 * side, visuals.text_color());
        let bar = |x: f32| {
            let bar = Rect::from_center_size(c + vec2(x, 0.0), vec2(2.0, 2.0 * r));
            painter.rect_filled(bar, 0.0, colour);
        };
        let triangle = |way: f32| {
            let corners = [
                vec2(-0.7 * way, -1.0),
                vec2(way, 0.0),
                vec2(-0.7 * way, 1.0),
            ];
            let corners = corners.map(|corner| c + r * corner).to_vec();
            painter.add(Shape::convex_polygon(corners, colour, Stroke::NONE));
        };
        let chevron = |way: f32| {
            let corners = [
                vec2(-0.5 * way, -1.0),
                vec2(0.6 * way, 0.0),
                vec2(-0.5 * way, 1.0),
            ];
            let corners = corners.map(|corner| c + r * corner).to_vec();
            painter.add(Shape::line(corners, Stroke::new(1.5, colour)));
        };
        match self {
            Self::First => {
                chevron(-1.0);
                bar(-1.4 * r);
            }
            Self::Back => chevron(-1.0),
            Self::Play => triangle(1.0),
            Self::Pause => {
                bar(-0.5 * r);
                bar(0.5 * r);
            }
            Self::Next => chevron(1.0),
            Self::Last => {
                chevron(1.0);
                bar(1.4 * r);
            }
        }
        response.on_hover_text(name).clicked()
    }
}

fn place(view: &View, count: usize) -> usize {
    let last = count.saturating_sub(1);
    match view.moment {
        Moment::Live => last,
        Moment::At(at) => at.min(last),
    }
}

fn jump(at: usize, count: usize, jump: Jump) -> Moment {
    let last = count.saturating_sub(1);
    let to = match jump {
        Jump::First => 0,
        Jump::Back => at.saturating_sub(1),
        Jump::Next => (at + 1).min(last),
        Jump::Last => last,
    };
    Moment::At(to)
}

/// The end of the track: it grows in leaps, so that marks rest in between; never beyond the schedule.
fn end(last: u64, steps: u64) -> f64 {
    let round = far_end(last.max(10) as f64);
    if steps >= last {
        round.min(steps.max(10) as f64)
    } else {
        round
    }
}

/// Least and largest value of each of `columns` parts of the axis: what a line of millions of points looks like.
fn envelope(curve: &Curve, end: f64, columns: usize) -> Vec<Option<(f64, f64)>> {
    let mut from = 0;
    let part = |column: usize| {
        let to = if column == columns {
            curve.len()
        } else {
            let edge = end * column as f64 / columns as f64;
            from + curve[from..].partition_point(|point| point.step < edge)
        };
        let range = std::mem::replace(&mut from, to)..to;
        let (low, high) = curve.extremes(range)?;
        Some((curve[low].value, curve[high].value))
    };
    (1..=columns).map(part).collect()
}

impl Scrubber {
    /// Draw it.
    pub fn show(&mut self, ui: &mut Ui, heard: &Heard, view: &mut View, out: &mut Vec<Command>) {
        let _ = out;
        let frames = heard.frames();
        self.hold(frames, view);
        self.replay(ui, frames, view);
        ui.horizontal(|ui| {
            self.buttons(ui, frames, view);
            let room = ui.available_width();
            let words = if frames.is_empty() {
                "no routing frame recorded yet".to_owned()
            } else {
                let step = grouped(frames[place(view, frames.len())].step);
                match view.moment {
                    Moment::Live => format!("step {step}, live"),
                    Moment::At(_) => format!("step {step}, not live"),
                }
            };
            let words = if matches!(view.moment, Moment::At(_)) {
                RichText::new(words).strong()
            } else {
                RichText::new(words).weak()
            };
            let label = ui.add(Label::new(words).truncate());
            let rest = room - label.rect.width();
            if frames.len() > 1 && rest > 260.0 {
                let all = format!("{} frames recorded", grouped(frames.len() as u64));
                ui.weak(all);
                ui.weak("line: training loss");
            }
        });
        let before = view.moment;
        track(ui, heard, frames, view);
        if view.moment != before {
            self.due = None;
        }
        self.held = match view.moment {
            Moment::At(at) => frames.get(at).map(|frame| (at, frame.step)),
            Moment::Live => None,
        };
    }

    /// Frames may have been thinned or taken back: stay at the step, not at the place.
    fn hold(&mut self, frames: &[Frame], view: &mut View) {
        if frames.is_empty() {
            view.moment = Moment::Live;
        }
        // At another place, another panel has chosen a frame.
        if let Some((at, step)) = self.held
            && view.moment == Moment::At(at)
            && frames.get(at).is_none_or(|frame| frame.step != step)
            && let Some(at) = nearest(frames, step)
        {
            view.moment = Moment::At(at);
        }
    }

    fn replay(&mut self, ui: &Ui, frames: &[Frame], view: &mut View) {
        let Some(due) = self.due else { return };
        let now = ui.input(|input| input.time);
        let each = (REPLAY / frames.len().max(1) as f64).clamp(SHORTEST, LONGEST);
        let mut due = due;
        if now >= due {
            let at = place(view, frames.len());
            if at + 1 >= frames.len() {
                self.due = None;
                view.moment = Moment::Live;
                return;
            }
            view.moment = Moment::At(at + 1);
            due = now + each;
            self.due = Some(due);
        }
        let wait = Duration::from_secs_f64((due - now).max(0.0));
        ui.ctx().request_repaint_after(wait);
    }

    fn buttons(&mut self, ui: &mut Ui, frames: &[Frame], view: &mut View) {
        let (count, at) = (frames.len(), place(view, frames.len()));
        let some = count > 1;
        let go = |ui: &mut Ui, sign: Sign, name: &str, enabled: bool| {
            let clicked = ui.add_enabled_ui(enabled && some, |ui| sign.button(ui, name));
            clicked.inner
        };
        if go(ui, Sign::First, "First frame", at > 0) {
            (view.moment, self.due) = (jump(at, count, Jump::First), None);
        }
        if go(ui, Sign::Back, "Frame before", at > 0) {
            (view.moment, self.due) = (jump(at, count, Jump::Back), None);
        }
        let playing = self.due.is_some();
        let (sign, name) = if playing {
            (Sign::Pause, "Stop the replay")
        } else {
            (Sign::Play, "Replay the training")
        };
        if go(ui, sign, name, true) {
            if playing {
                self.due = None;
            } else {
                if at + 1 == count {
                    view.moment = Moment::At(0);
                }
                self.due = Some(ui.input(|input| input.time) + LONGEST);
            }
        }
        if go(ui, Sign::Next, "Frame after", at + 1 < count) {
            (view.moment, self.due) = (jump(at, count, Jump::Next), None);
        }
        if go(ui, Sign::Last, "Last frame", at + 1 < count) {
            (view.moment, self.due) = (jump(at, count, Jump::Last), None);
        }
        let live = matches!(view.moment, Moment::Live);
        let button = ui.add_enabled(!frames.is_empty(), Button::selectable(live, "Live"));
        if button.on_hover_text("Follow the newest frame").clicked() {
            (view.moment, self.due) = (Moment::Live, None);
        }
    }
}

fn track(ui: &mut Ui, heard: &Heard, frames: &[Frame], view: &mut View) {
    let size = vec2(ui.available_width(), TRACK);
    let (rect, response) = ui.allocate_exact_size(size, Sense::click_and_drag());
    let at = place(view, frames.len());
    let step = frames.get(at).map_or(0, |frame| frame.step);
    response.widget_info(|| {
        WidgetInfo::slider(!frames.is_empty(), step as f64, "Step of the routing frame")
    });
    let last = heard.step.max(frames.last().map_or(0, |frame| frame.step));
    let steps = heard.subject().map_or(0, |run| run.steps);
    let end = end(last, steps);
    let inner = rect.shrink2(vec2(6.0, 0.0));
    point(&response, (frames, &heard.series.changes), inner, end, view);
    keys(ui, &response, frames, view);
    paint(ui, &response, heard, frames, inner, end, view);
}

fn point(
    response: &Response,
    (frames, changes): (&[Frame], &[(u64, String)]),
    inner: Rect,
    end: f64,
    view: &mut View,
) {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a step, never negative"
    )]
    let step = |x: f32| {
        let part = ((x - inner.left()) / inner.width()).clamp(0.0, 1.0);
        (f64::from(part) * end).round() as u64
    };
    if (response.clicked() || response.dragged())
        && let Some(position) = response.interact_pointer_pos()
        && let Some(at) = nearest(frames, step(position.x))
    {
        response.request_focus();
        view.moment = Moment::At(at);
    }
    if let Some(position) = response.hover_pos()
        && let Some(at) = nearest(frames, step(position.x))
    {
        let mut words = format!("frame at step {}", grouped(frames[at].step));
        for (step, change) in changes {
            let x = inner.left() + (*step as f64 / end) as f32 * inner.width();
            if (x - position.x).abs() < 4.0 {
                words.push_str(&format!("\nstep {}: {change}", grouped(*step)));
            }
        }
        response.clone().on_hover_text_at_pointer(words);
    }
}

/// Left and right, Home and End while the track has the focus.
fn keys(ui: &Ui, response: &Response, frames: &[Frame], view: &mut View) {
    if !response.has_focus() || frames.is_empty() {
        return;
    }
    let filter = EventFilter {
        horizontal_arrows: true,
        ..EventFilter::default()
    };
    ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, filter));
    for (key, way) in [
        (Key::ArrowLeft, Jump::Back),
        (Key::ArrowRight, Jump::Next),
        (Key::Home, Jump::First),
        (Key::End, Jump::Last),
    ] {
        let times = ui.input_mut(|input| input.count_and_consume_key(Modifiers::NONE, key));
        for _ in 0..times {
            view.moment = jump(place(view, frames.len()), frames.len(), way);
        }
    }
}

fn paint(
    ui: &Ui,
    response: &Response,
    heard: &Heard,
    frames: &[Frame],
    inner: Rect,
    end: f64,
    view: &View,
) {
    let painter = ui.painter_at(response.rect);
    let visuals = ui.visuals();
    let quiet = visuals.weak_text_color();
    let x = |step: f64| inner.left() + (step / end) as f32 * inner.width();
    let ground = Rect::from_min_max(
        pos2(response.rect.left(), response.rect.top()),
        pos2(response.rect.right(), response.rect.bottom() - 12.0),
    );
    painter.rect_filled(ground, 2.0, visuals.extreme_bg_color);
    // Frames, at most one mark a pixel and a half.
    let mut before = f32::NEG_INFINITY;
    for frame in frames {
        let at = x(frame.step as f64);
        if at - before >= 1.5 {
            let range = ground.top() + 2.0..=ground.top() + MARKS - 2.0;
            painter.vline(at, range, Stroke::new(1.0, quiet));
            before = at;
        }
    }
    for (step, _) in &heard.series.changes {
        let range = ground.top()..=ground.bottom();
        painter.vline(
            x(*step as f64),
            range,
            Stroke::new(1.0, visuals.warn_fg_color),
        );
    }
    let plot = Rect::from_min_max(
        pos2(inner.left(), ground.top() + MARKS),
        pos2(inner.right(), ground.bottom() - 2.0),
    );
    loss(&painter, heard, plot, end, visuals.text_color());
    if frames.is_empty() && heard.series.loss.is_empty() {
        return;
    }
    let font = FontId::proportional(10.0);
    let base = response.rect.bottom();
    let zero = pos2(inner.left(), base);
    painter.text(zero, Align2::LEFT_BOTTOM, "0", font.clone(), quiet);
    let most = format!("step {}", grouped(end.round() as u64));
    let right = pos2(inner.right(), base);
    painter.text(right, Align2::RIGHT_BOTTOM, most, font, quiet);
    if let Some(frame) = frames.get(place(view, frames.len())) {
        let at = x(frame.step as f64);
        let colour = if matches!(view.moment, Moment::Live) {
            visuals.text_color()
        } else {
            ACCENT
        };
        painter.vline(at, ground.y_range(), Stroke::new(2.0, colour));
        let grip = pos2(at, ground.top() + 0.5 * MARKS);
        painter.circle(
            grip,
            5.0,
            colour,
            Stroke::new(1.0, visuals.extreme_bg_color),
        );
    }
    if response.has_focus() {
        let inside = egui::StrokeKind::Inside;
        let stroke = visuals.selection.stroke;
        painter.rect_stroke(response.rect, 2.0, stroke, inside);
    }
}

/// The training loss, least and largest value of each pixel.
fn loss(painter: &egui::Painter, heard: &Heard, rect: Rect, end: f64, colour: egui::Color32) {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a width on a screen"
    )]
    let columns = rect.width().max(1.0) as usize;
    let parts = envelope(&heard.series.loss, end, columns);
    let known = || parts.iter().flatten();
    let least = known().map(|part| part.0).fold(f64::INFINITY, f64::min);
    let most = known().map(|part| part.1).fold(f64::NEG_INFINITY, f64::max);
    if !(most - least).is_finite() {
        return;
    }
    let height = (most - least).max(1e-9);
    let y = |value: f64| rect.bottom() - ((value - least) / height) as f32 * rect.height();
    let mut line = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        if let Some((low, high)) = part {
            let x = rect.left() + at as f32 + 0.5;
            line.push(pos2(x, y(*high)));
            if low < high {
                line.push(pos2(x, y(*low)));
            }
        }
    }
    painter.add(Shape::line(line, Stroke::new(1.0, colour)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::heard::Point;

    fn point(step: f64, value: f64) -> Point {
        Point {
            step,
            tokens: 0.0,
            seconds: 0.0,
            value,
        }
    }

    #[test]
    fn jumps_stay_within_the_frames() {
        assert_eq!(jump(0, 5, Jump::Back), Moment::At(0));
        assert_eq!(jump(3, 5, Jump::Next), Moment::At(4));
        assert_eq!(jump(4, 5, Jump::Next), Moment::At(4));
        assert_eq!(jump(2, 5, Jump::Last), Moment::At(4));
    }

    #[test]
    fn the_track_ends_at_the_schedule_at_most() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        close(end(199, 200), 200.0);
        close(end(130, 5000), 150.0);
        close(end(620, 5000), 800.0);
        close(end(4900, 5000), 5000.0);
        close(end(0, 0), 10.0);
    }

    #[test]
    fn a_spike_survives_thinning() {
        let mut curve = Curve::default();
        for step in 0..10_000 {
            let value = match step {
                10 => f64::NAN,
                5_003 => 9.0,
                _ => 1.0,
            };
            curve.push(point(f64::from(step), value));
        }
        let parts = envelope(&curve, 10_000.0, 100);
        assert_eq!(parts.len(), 100);
        assert_eq!(parts[0], Some((1.0, 1.0)));
        assert_eq!(parts[50], Some((1.0, 9.0)));
        assert_eq!(parts[51], Some((1.0, 1.0)));
    }
}
