//! One chart over training: a line of names and numbers, curves, axes. Charts that share a [`Lens`] share their horizontal
//! axis, the place that is read, and the moment that is marked.

use std::ops::RangeInclusive;

use egui::{Align2, Color32, FontId, Response, Role, Sense, Stroke, TextStyle, Ui, WidgetInfo};
use egui_plot::{
    AxisHints, GridInput, GridMark, Line, MarkerShape, Plot, PlotPoints, Points, Span, VLine,
};

use super::curve::Curve;
use super::decimate::{self, decimate};
use super::ticks;
use super::view::{Axis, View};

/// Width of the numbers left of a chart.
const NUMBERS: f32 = 42.0;

/// Height of the numbers below a chart.
pub(super) const BELOW: f32 = 16.0;

/// Height of the line above a chart.
pub(super) const ABOVE: f32 = 18.0;

/// Width of the line before a name.
const SWATCH: f32 = 16.0;

/// Room for half a number at the right end of the axis.
const MARGIN: f32 = 12.0;

/// What all charts of a panel share during one frame, and what the pointer did in any of them.
#[derive(Clone, Debug)]
pub(super) struct Lens {
    axis: Axis,
    log_x: bool,
    /// From, to, in units of the axis.
    range: (f64, f64),
    /// Where values are read; `None`: at the end.
    cursor: Option<f64>,
    /// The moment that the routing view shows, if it is not the newest.
    mark: Option<f64>,
    /// Where something was changed by hand, and what.
    pub(super) changes: Vec<(f64, String)>,
    /// No chart has said yet what the mark is.
    unnamed: bool,
    /// The part that is being selected.
    band: Option<(f64, f64)>,
    /// Where the pointer is in a chart.
    pub(super) hovered: Option<f64>,
    /// Where a chart was clicked.
    pub(super) clicked: Option<f64>,
    /// The part that the pointer spans, while its button is down.
    pub(super) selected: Option<(f64, f64)>,
    /// The button was let go.
    pub(super) finished: bool,
    /// The whole was asked for.
    pub(super) whole: bool,
}

impl Lens {
    /// The part of the axis that `view` asks for; of all: from the beginning to a round number after the last point of
    /// `curves`, but not past `end`, where the run will end.
    pub(super) fn new<'a>(
        view: &View,
        curves: impl Iterator<Item = &'a Curve>,
        end: Option<f64>,
        mark: Option<f64>,
        band: Option<(f64, f64)>,
    ) -> Self {
        let axis = view.axis;
        let (mut first, mut last) = (f64::INFINITY, 0.0_f64);
        for curve in curves {
            let positive = curve.iter().map(|point| point.at(axis)).find(|x| *x > 0.0);
            first = first.min(positive.unwrap_or(f64::INFINITY));
            last = last.max(curve.last().map_or(0.0, |point| point.at(axis)));
        }
        let mut to = ticks::far_end(last);
        if let Some(end) = end.filter(|end| axis == Axis::Step && *end >= last && *end > 0.0) {
            to = if last > 0.0 { to.min(end) } else { end };
        }
        let log_x = view.scales.log_x;
        let from = if log_x { first.min(to / 10.0) } else { 0.0 };
        let (from, to) = view.scales.range.unwrap_or((from, to));
        let range = if log_x {
            let from = if from > 0.0 {
                from
            } else {
                first.min(to / 10.0)
            };
            (from, to.max(from * 1.01))
        } else {
            (from, to.max(from + 1e-9))
        };
        Self {
            axis,
            log_x,
            range,
            cursor: view.cursor,
            mark,
            changes: Vec::new(),
            unnamed: true,
            band,
            hovered: None,
            clicked: None,
            selected: None,
            finished: false,
            whole: false,
        }
    }

    /// The part of the axis that is shown.
    pub(super) fn range(&self) -> (f64, f64) {
        self.range
    }

    /// What is read, in words: the place of the pointer, or `None` for the newest.
    pub(super) fn place(&self) -> Option<String> {
        self.cursor.map(|x| ticks::place(self.axis, x))
    }

    fn to_plot(&self, x: f64) -> f64 {
        if self.log_x { x.max(1e-12).log10() } else { x }
    }

    fn shown(&self) -> (f64, f64) {
        (self.to_plot(self.range.0), self.to_plot(self.range.1))
    }

    /// Marks of the horizontal axis in units of the plot, and the words for each.
    fn marks(&self, width: f32) -> Vec<(f64, String)> {
        let count = (width / 56.0).clamp(2.0, 10.0) as usize;
        if self.log_x {
            let marks = ticks::logarithmic(self.shown(), count).into_iter();
            return marks
                .map(|at| (at, self.words(10_f64.powf(at), 0.1 * 10_f64.powf(at))))
                .collect();
        }
        let unit = match self.axis {
            Axis::Time => ticks::time_unit(self.range.1).0,
            _ => 1.0,
        };
        let (marks, step) = ticks::linear(self.range, count, unit);
        marks
            .into_iter()
            .map(|at| (at, self.words(at, step)))
            .collect()
    }

    fn words(&self, x: f64, step: f64) -> String {
        match self.axis {
            Axis::Step | Axis::Tokens => ticks::mark(x, step),
            Axis::Time => {
                let (unit, name) = ticks::time_unit(self.range.1);
                format!("{} {name}", ticks::mark(x / unit, step / unit))
            }
        }
    }
}

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Thin and pale: single noisy values.
    Thin,
    /// A plain line.
    Solid,
    /// A line with dots where there are few points.
    Dotted,
}

/// One curve of a chart.
#[derive(Clone, Debug)]
pub(super) struct Trace<'a> {
    /// What it is called in the line above.
    pub(super) name: String,
    /// Its points.
    pub(super) curve: &'a Curve,
    /// Its colour.
    pub(super) colour: Color32,
    /// How it is drawn.
    pub(super) style: Style,
    /// Whether its name and number stand in the line above.
    pub(super) read: bool,
}

/// One chart.
#[derive(Clone, Debug)]
pub(super) struct Chart<'a> {
    /// Its name.
    pub(super) title: &'a str,
    /// Unit of the values.
    pub(super) unit: &'a str,
    /// Logarithmic values; what is not positive is a gap.
    pub(super) log: bool,
    /// The vertical axis begins at zero.
    pub(super) zero: bool,
    /// Multiplies values before they are written.
    pub(super) factor: f64,
    /// Height without the line above, with the numbers below if there are any.
    pub(super) height: f32,
    /// Whether the horizontal axis has numbers.
    pub(super) numbers: bool,
    /// Whether the names that do not fit beside the title go on lines of their own; else the first ones are left out.
    pub(super) wrap: bool,
    /// Its curves, in the order of drawing.
    pub(super) traces: Vec<Trace<'a>>,
}

impl Chart<'_> {
    /// Draw it.
    pub(super) fn show(&self, ui: &mut Ui, lens: &mut Lens) {
        let read = self.header(ui, lens);
        let response = self.plot(ui, lens);
        let place = lens.place().unwrap_or_else(|| "newest".into());
        let text = format!(
            "{} in {}, {place}: {}",
            self.title,
            self.unit,
            read.join(", ")
        );
        response.widget_info(|| WidgetInfo::labeled(Role::Image, true, text.clone()));
    }

    fn write(&self, value: f64) -> String {
        ticks::figure(value * self.factor)
    }

    /// The line above: title, unit, and each curve's name and value where the pointer is.
    fn header(&self, ui: &mut Ui, lens: &Lens) -> Vec<String> {
        let width = ui.available_width();
        let small = TextStyle::Small.resolve(ui.style());
        let mono = FontId::monospace(small.size);
        let (strong, weak) = (
            ui.visuals().strong_text_color(),
            ui.visuals().weak_text_color(),
        );
        let lay = |text: &str, font: &FontId| {
            ui.painter().layout_no_wrap(text.into(), font.clone(), weak)
        };
        let title = lay(self.title, &small).size().x + 5.0;
        let unit = lay(self.unit, &small).size().x;
        // Each value has a place of its own, so that nothing moves when a number changes.
        let slot = lay("0.0e-0", &mono).size().x + 4.0;
        let traces: Vec<&Trace<'_>> = self.traces.iter().filter(|trace| trace.read).collect();
        let need = |trace: &Trace<'_>| {
            SWATCH + lay(&trace.name, &small).size().x.min(width / 2.0) + 4.0 + slot + 8.0
        };
        let needs: Vec<f32> = traces.iter().map(|trace| need(trace)).collect();
        let (mut first, mut room) = (0, width - title - unit - 4.0);
        let total: f32 = needs.iter().sum();
        let wrapped = self.wrap && total > room;
        while !wrapped && needs[first..].iter().sum::<f32>() > room && first < needs.len() {
            first += 1;
        }
        // Places of the names, from the left: beside the title at the right, or on lines below it.
        let mut places = Vec::new();
        let (mut x, mut line) = (width - needs[first..].iter().sum::<f32>(), 0);
        if wrapped {
            (x, line, room) = (0.0, 1, width);
        }
        for need in &needs[first..] {
            if wrapped && x > 0.0 && x + need > room {
                (x, line) = (0.0, line + 1);
            }
            places.push((x, line));
            x += need;
        }
        let size = egui::vec2(width, ABOVE * (1 + line) as f32);
        let (rect, _) = ui.allocate_exact_size(size, Sense::hover());
        let painter = ui.painter().with_clip_rect(rect.expand(1.0));
        let at = |x: f32, line: i32| rect.left_top() + egui::vec2(x, ABOVE * (line as f32 + 0.5));
        painter.text(
            at(0.0, 0),
            Align2::LEFT_CENTER,
            self.title,
            small.clone(),
            strong,
        );
        painter.text(
            at(title, 0),
            Align2::LEFT_CENTER,
            self.unit,
            small.clone(),
            weak,
        );
        let value = |trace: &Trace<'_>| {
            let point = match lens.cursor {
                Some(x) => trace.curve.nearest(lens.axis, x),
                None => trace.curve.latest(),
            };
            point.map_or_else(|| "—".into(), |point| self.write(point.value))
        };
        for ((trace, need), (x, line)) in traces[first..].iter().zip(&needs[first..]).zip(places) {
            let (from, to) = (at(x, line), at(x + SWATCH - 4.0, line));
            painter.line_segment([from, to], trace.stroke());
            if trace.style == Style::Dotted {
                painter.circle_filled(from.lerp(to, 0.5), 2.5, trace.colour);
            }
            let end = at(x + need - slot - 8.0, line);
            let clip = egui::Rect::from_min_max(
                at(x, line) - egui::vec2(0.0, ABOVE),
                end + egui::vec2(0.0, ABOVE),
            );
            let names = painter.with_clip_rect(clip.intersect(rect));
            names.text(
                at(x + SWATCH, line),
                Align2::LEFT_CENTER,
                &trace.name,
                small.clone(),
                weak,
            );
            painter.text(end, Align2::LEFT_CENTER, value(trace), mono.clone(), strong);
        }
        traces
            .iter()
            .map(|trace| format!("{} {}", trace.name, value(trace)))
            .collect()
    }

    /// Ends of the vertical axis, in units of the plot.
    fn ends(&self, lens: &Lens) -> (f64, f64) {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for trace in &self.traces {
            let Some((min, max)) = trace
                .curve
                .extremes(trace.curve.range(lens.axis, lens.range))
            else {
                continue;
            };
            low = low.min(trace.curve[min].value);
            high = high.max(trace.curve[max].value);
        }
        match (low <= high, self.log) {
            (true, true) if high > 0.0 => ticks::log_ends(low.max(high * 1e-9), high),
            (true, false) => ticks::ends(low, high, self.zero),
            (_, true) => (-1.0, 1.0),
            (_, false) => (0.0, 1.0),
        }
    }

    fn plot(&self, ui: &mut Ui, lens: &mut Lens) -> Response {
        let (bottom, top) = self.ends(lens);
        let (from, to) = lens.shown();
        let width = ui.available_width() - NUMBERS - MARGIN;
        let marks = lens.marks(width);
        let values: Vec<(f64, String)> = if self.log {
            let marks = ticks::logarithmic((bottom, top), (self.height / 22.0).max(2.0) as usize);
            let write = |at: f64| ticks::figure(10_f64.powf(at) * self.factor);
            marks.into_iter().map(|at| (at, write(at))).collect()
        } else {
            let count = (self.height / 28.0).clamp(2.0, 6.0) as usize;
            let (marks, step) = ticks::linear((bottom, top), count, 1.0);
            let write = |at: f64| ticks::mark(at * self.factor, step * self.factor);
            marks.into_iter().map(|at| (at, write(at))).collect()
        };
        let font = FontId::proportional(TextStyle::Small.resolve(ui.style()).size - 0.5);
        let hints = |hints: AxisHints<'static>, marks: &[(f64, String)]| {
            let marks = marks.to_vec();
            let words = move |mark: GridMark, _: &RangeInclusive<f64>| {
                let found = marks.iter().find(|(at, _)| *at == mark.value);
                found.map_or_else(String::new, |(_, words)| words.clone())
            };
            hints.formatter(words).tick_label_font(font.clone())
        };
        let grid = |marks: Vec<(f64, String)>, ends: (f64, f64)| {
            let step = ends.1 - ends.0;
            move |_: GridInput| -> Vec<GridMark> {
                let mark = |&(value, _): &(f64, String)| GridMark {
                    value,
                    step_size: step,
                };
                marks.iter().map(mark).collect()
            }
        };
        let y_hints = hints(AxisHints::new_y(), &values)
            .min_thickness(NUMBERS)
            .label_spacing(egui::Rangef::new(4.0, 6.0));
        let x_hints = hints(AxisHints::new_x(), &marks)
            .min_thickness(BELOW)
            .label_spacing(egui::Rangef::new(8.0, 12.0));
        let faint = ui.visuals().weak_text_color().gamma_multiply(0.25);
        let strong = ui.visuals().strong_text_color();
        let warn = ui.visuals().warn_fg_color;
        let response = Plot::new(self.title)
            .height(self.height)
            .width(width + NUMBERS)
            .allow_zoom(false)
            .allow_scroll(false)
            .allow_drag(false)
            .allow_axis_zoom_drag(false)
            .allow_boxed_zoom(false)
            .allow_double_click_reset(false)
            .show_crosshair(false)
            .show_axes([self.numbers, true])
            .set_margin_fraction(egui::Vec2::ZERO)
            .grid_color(faint)
            .grid_fade(0.0)
            .custom_x_axes(vec![x_hints])
            .custom_y_axes(vec![y_hints])
            .x_grid_spacer(grid(marks, (from, to)))
            .y_grid_spacer(grid(values, (bottom, top)))
            .show(ui, |plot| {
                plot.set_plot_bounds_x(from..=to);
                let air = (top - bottom) * 0.03;
                plot.set_plot_bounds_y(bottom - air..=top + air);
                let span = decimate::Span {
                    axis: lens.axis,
                    range: lens.range,
                    log: lens.log_x,
                    columns: width.max(16.0) as usize,
                };
                if let Some((a, b)) = lens.band {
                    let (a, b) = (lens.to_plot(a.min(b)), lens.to_plot(a.max(b)));
                    plot.span(Span::new("", a..=b).fill(faint).border_width(0.0));
                }
                for trace in &self.traces {
                    trace.draw(plot, lens, &span, self.log);
                }
                for (at, _) in &lens.changes {
                    let line = VLine::new("changed", lens.to_plot(*at)).color(warn);
                    let style = egui_plot::LineStyle::dashed_dense();
                    plot.vline(line.width(1.0).style(style).allow_hover(false));
                }
                if let Some(at) = lens.mark {
                    let line = VLine::new("shown", lens.to_plot(at)).color(strong);
                    plot.vline(line.width(1.0).allow_hover(false));
                }
                if let Some(at) = lens.cursor {
                    let line =
                        VLine::new("read", lens.to_plot(at)).color(faint.gamma_multiply(2.0));
                    plot.vline(line.width(1.0).allow_hover(false));
                }
            });
        let (plot, transform) = (response.response, response.transform);
        if let Some(at) = lens.mark.filter(|_| std::mem::take(&mut lens.unnamed)) {
            // The first chart says what the line is.
            let frame = *transform.frame();
            let x = transform.position_from_point_x(lens.to_plot(at));
            let words = format!("map: {}", ticks::place(lens.axis, at));
            let (side, x) = if x < frame.center().x {
                (Align2::LEFT_TOP, x + 4.0)
            } else {
                (Align2::RIGHT_TOP, x - 4.0)
            };
            let painter = ui.painter().with_clip_rect(frame);
            painter.text(
                egui::pos2(x, frame.top() + 2.0),
                side,
                words,
                font.clone(),
                strong,
            );
        }
        let (log_x, (from, to)) = (lens.log_x, lens.range);
        let x = |position: egui::Pos2| {
            let x = transform.value_from_position(position).x;
            let x = if log_x { 10_f64.powf(x) } else { x };
            x.clamp(from, to)
        };
        lens.hovered = plot.hover_pos().map(x).or(lens.hovered);
        if let Some(pointer) = plot.hover_pos() {
            // What was changed, where the pointer is near its line.
            let near = |(at, _): &&(f64, String)| {
                let at = transform.position_from_point_x(lens.to_plot(*at));
                (at - pointer.x).abs() < 4.0
            };
            let words: Vec<&str> = lens
                .changes
                .iter()
                .filter(near)
                .map(|(_, words)| words.as_str())
                .collect();
            if !words.is_empty() {
                plot.clone()
                    .on_hover_text_at_pointer(format!("changed here: {}", words.join(", ")));
            }
        }
        if plot.clicked() {
            lens.clicked = plot.interact_pointer_pos().map(x).or(lens.clicked);
        }
        lens.finished |= plot.drag_stopped();
        if plot.dragged() {
            let origin = ui.input(|input| input.pointer.press_origin());
            let here = plot.interact_pointer_pos();
            lens.selected = origin
                .zip(here)
                .map(|(a, b)| (x(a), x(b)))
                .or(lens.selected);
        }
        lens.whole |= plot.double_clicked();
        plot
    }
}

impl Trace<'_> {
    fn stroke(&self) -> Stroke {
        match self.style {
            Style::Thin => Stroke::new(1.0, self.colour.gamma_multiply(0.55)),
            Style::Solid | Style::Dotted => Stroke::new(1.6, self.colour),
        }
    }

    fn draw(
        &self,
        plot: &mut egui_plot::PlotUi<'_>,
        lens: &Lens,
        span: &decimate::Span,
        log: bool,
    ) {
        let value = |value: f64| if log { value.log10() } else { value };
        let mut dots = Vec::new();
        let stroke = self.stroke();
        let few = self.style == Style::Dotted
            && 6 * self.curve.range(span.axis, span.range).len() < span.columns;
        let lines = decimate(self.curve, span);
        // On a logarithmic axis, what is not positive is a gap, too.
        let pieces = lines
            .iter()
            .flat_map(|line| line.split(|point| log && point[1] <= 0.0));
        for piece in pieces.filter(|piece| !piece.is_empty()) {
            let points = piece.iter().map(|&[x, y]| [lens.to_plot(x), value(y)]);
            let mut points: Vec<[f64; 2]> = points.collect();
            // In old runs, updates that were read back together have one time: a line goes through the last of them.
            if self.style != Style::Thin {
                points.reverse();
                points.dedup_by_key(|point| point[0]);
                points.reverse();
            }
            if few || points.len() == 1 {
                dots.extend_from_slice(&points);
            }
            if points.len() > 1 {
                let line = Line::new(self.name.as_str(), PlotPoints::from(points));
                plot.line(line.stroke(stroke).allow_hover(false));
            }
        }
        if !dots.is_empty() {
            let points = Points::new(self.name.as_str(), PlotPoints::from(dots));
            let points = points
                .color(stroke.color)
                .radius(2.2)
                .shape(MarkerShape::Circle);
            plot.points(points.allow_hover(false));
        }
    }
}
