//! Panel: losses and rates over training.

use egui::{Color32, Ui};

use super::chart::{self, Chart, Lens, Style, Trace};
use super::depths::{self, Depths};
use super::heard::{Curve, Heard, Point};
use super::palette;
use super::routing::line_colour;
use super::scales;
use super::smooth::Smoothed;
use super::view::{Moment, View};

/// Height from which all charts have room.
const ALL: f32 = 330.0;

/// Its own state.
#[derive(Debug, Default)]
pub(super) struct Curves {
    loss: Smoothed,
    grad_norm: Smoothed,
    depths: Depths,
    /// The part that is being selected with the pointer.
    band: Option<(f64, f64)>,
    /// The cursor is in one of these charts.
    reading: bool,
    /// The chart below the losses where there is room for one only.
    second: &'static str,
}

/// What stands in which chart.
struct Kind {
    title: &'static str,
    unit: &'static str,
    log: bool,
    zero: bool,
    factor: f64,
    /// Share of the height.
    share: f32,
}

impl Curves {
    /// Draw it on this height: all charts, or where that is too low the losses and one more, to be chosen.
    pub(super) fn show(&mut self, ui: &mut Ui, heard: &Heard, view: &mut View, height: f32) {
        let series = &heard.series;
        let top = ui.cursor().top();
        let known = depths::known(series);
        scales::show(ui, view, "curves", known);
        let mut used = ui.cursor().top() - top;
        if series.loss.is_empty() && series.val_loss.is_empty() {
            let words =
                "Losses, gradient norm, learning rate and speed appear here with the first update.";
            scales::empty(ui, words, height - used);
            return;
        }
        let end = heard.subject().map(|run| run.steps as f64);
        let drawn = [&series.loss, &series.val_loss].into_iter();
        let mut lens = Lens::new(view, drawn, end, shown(heard, view), self.band);
        lens.changes = changes(heard, view);
        let window = view.scales.smooth;
        let smooth = window > 1.0;
        let loss = if smooth {
            self.loss.of(&series.loss, window)
        } else {
            &series.loss
        };
        let norm = if smooth {
            self.grad_norm.of(&series.grad_norm, window)
        } else {
            &series.grad_norm
        };
        let dark = ui.visuals().dark_mode;
        let (first, second) = (palette::colour(0, dark), palette::colour(1, dark));
        let trace = |name: &str, curve, colour: Color32, style, read| Trace {
            name: name.into(),
            curve,
            colour,
            style,
            read,
        };
        let log = view.scales.log_y;
        let kind = |title, unit, zero, share| Kind {
            title,
            unit,
            log: false,
            zero,
            factor: 1.0,
            share,
        };
        let mut losses = Vec::new();
        let mut norms = Vec::new();
        if smooth {
            losses.push(trace("raw", &series.loss, first, Style::Thin, true));
            norms.push(trace("raw", &series.grad_norm, first, Style::Thin, true));
        }
        losses.push(trace("train", loss, first, Style::Solid, true));
        losses.push(trace("val", &series.val_loss, second, Style::Dotted, true));
        norms.push(trace("norm", norm, first, Style::Solid, true));
        let mut charts = vec![(
            Kind {
                log,
                ..kind("Loss", "nats", false, 2.6)
            },
            losses,
        )];
        let guessing = guessing(heard);
        if !series.accuracy.is_empty() {
            let curve = trace("val", &series.accuracy, second, Style::Dotted, true);
            let quiet = ui.visuals().weak_text_color();
            let guess = trace(
                "guessing",
                &guessing,
                quiet,
                Style::Thin,
                !guessing.is_empty(),
            );
            charts.push((
                Kind {
                    factor: 100.0,
                    ..kind("Accuracy", "%", true, 1.0)
                },
                vec![guess, curve],
            ));
        }
        let (unit, share) = if known && view.scales.per_depth {
            let depths = self.depths.of(series);
            norms = Vec::new();
            for (at, (name, curve)) in depths.iter().enumerate() {
                let colour = line_colour(at, depths.len(), dark);
                norms.push(trace(name, curve, colour, Style::Solid, true));
            }
            ("of each sublayer's parameters", 1.6)
        } else {
            ("before clipping", 1.0)
        };
        charts.push((
            Kind {
                log,
                ..kind("Gradient norm", unit, true, share)
            },
            norms,
        ));
        let lr = trace("lr", &series.lr, first, Style::Solid, true);
        charts.push((kind("Learning rate", "", true, 1.0), vec![lr]));
        let speed = trace("speed", &series.speed, first, Style::Solid, true);
        charts.push((kind("Speed", "tokens/s", true, 1.0), vec![speed]));

        if height < ALL {
            charts = choose(ui, &mut self.second, charts);
            used = ui.cursor().top() - top;
        }
        let gap = ui.spacing().item_spacing.y;
        let fixed = charts.len() as f32 * (chart::ABOVE + 2.0 * gap) + chart::BELOW + used;
        let shares: f32 = charts.iter().map(|(kind, _)| kind.share).sum();
        let each = ((height - fixed) / shares).max(32.0);
        let count = charts.len();
        for (index, (kind, traces)) in charts.into_iter().enumerate() {
            let numbers = index + 1 == count;
            let chart = Chart {
                title: kind.title,
                unit: kind.unit,
                log: kind.log,
                zero: kind.zero,
                factor: kind.factor,
                height: (each * kind.share).floor() + if numbers { chart::BELOW } else { 0.0 },
                numbers,
                wrap: false,
                traces,
            };
            chart.show(ui, &mut lens);
        }
        answer(&lens, heard, view, (&mut self.band, &mut self.reading));
    }
}

/// The accuracy of who draws an answer at random, over the part of the training that has accuracies.
fn guessing(heard: &Heard) -> Curve {
    let mut curve = Curve::default();
    let Some(chance) = heard.subject().and_then(|run| run.chance) else {
        return curve;
    };
    let last = heard.series.loss.last().copied();
    let first = Point {
        step: 0.0,
        tokens: 0.0,
        seconds: 0.0,
        value: chance,
    };
    for point in [Some(first), last].into_iter().flatten() {
        curve.push(Point {
            value: chance,
            ..point
        });
    }
    curve
}

/// The losses, and the chart that was chosen to stand below them.
fn choose<T>(ui: &mut Ui, second: &mut &'static str, charts: Vec<(Kind, T)>) -> Vec<(Kind, T)> {
    let known = charts.iter().any(|(kind, _)| kind.title == *second);
    if !known && let Some((kind, _)) = charts.get(1) {
        *second = kind.title;
    }
    ui.horizontal_wrapped(|ui| {
        for (kind, _) in charts.iter().skip(1) {
            ui.selectable_value(second, kind.title, kind.title);
        }
    });
    let chosen = |(at, (kind, _)): &(usize, (Kind, T))| *at == 0 || kind.title == *second;
    let charts = charts.into_iter().enumerate().filter(chosen);
    charts.map(|(_, chart)| chart).collect()
}

/// Where fields were changed while the run went on, with what was changed.
fn changes(heard: &Heard, view: &View) -> Vec<(f64, String)> {
    let changes = heard.series.changes.iter();
    let placed = changes.filter_map(|(step, words)| {
        let at = heard.series.loss.place(view.axis, *step as f64)?;
        Some((at, words.clone()))
    });
    placed.collect()
}

/// Where the moment lies that the routing view shows, if it is not the newest.
pub(super) fn shown(heard: &Heard, view: &View) -> Option<f64> {
    let Moment::At(index) = view.moment else {
        return None;
    };
    let frame = heard.frames().get(index)?;
    heard.series.loss.place(view.axis, frame.step as f64)
}

/// Do what the pointer asked for in the charts: read, select a part, show all, go to a moment.
pub(super) fn answer(
    lens: &Lens,
    heard: &Heard,
    view: &mut View,
    (band, reading): (&mut Option<(f64, f64)>, &mut bool),
) {
    if lens.hovered.is_some() {
        (view.cursor, *reading) = (lens.hovered, true);
    } else if std::mem::take(reading) {
        view.cursor = None;
    }
    if lens.selected.is_some() {
        *band = lens.selected;
    } else if let Some((a, b)) = band.take().filter(|_| lens.finished) {
        let (from, to) = lens.range();
        // A slip of the hand is not a selection.
        if (b - a).abs() > 0.01 * (to - from) {
            view.scales.range = Some((a.min(b), a.max(b)));
        }
    }
    if lens.whole {
        view.scales.range = None;
    } else if let Some(x) = lens.clicked {
        let step = heard.series.loss.step_at(view.axis, x);
        let frames = heard.frames().iter().enumerate();
        let near = |step: f64| {
            frames.min_by(|a, b| distance(a.1.step, step).total_cmp(&distance(b.1.step, step)))
        };
        if let Some((index, _)) = step.and_then(near) {
            view.moment = Moment::At(index);
        }
    }
}

fn distance(a: u64, b: f64) -> f64 {
    (a as f64 - b).abs()
}
