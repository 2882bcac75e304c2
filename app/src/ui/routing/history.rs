//! One read over the training: its sources stacked, or as lines where weights are signed.

use egui::{Sense, Stroke, Ui};
use egui_plot::{FilledArea, Line, PlotPoints, VLine};

use super::plots::{chosen, key, named, pick, plain, source_colour, thinned};
use super::shown::{frame, nearest};
use super::signed::signed;
use super::{empty, grid};
use crate::names::source_short;
use crate::protocol::Frame;
use crate::ui::format::{grouped, percent};
use crate::ui::heard::Heard;
use crate::ui::view::{Moment, View};

/// The weights of one read over the frames that have it.
#[derive(Debug, Default, PartialEq)]
struct Course {
    sources: Vec<String>,
    steps: Vec<f64>,
    /// `[sources][steps]`
    weights: Vec<Vec<f64>>,
}

impl Course {
    fn of(frames: &[Frame], (site, stream): (u32, usize)) -> Self {
        let mut course = Self::default();
        for at in thinned(frames.len()) {
            let found = frames[at].sites.iter().find(|own| own.site == site);
            let Some(stream) = found.and_then(|site| site.streams.get(stream)) else {
                continue;
            };
            if course.sources.is_empty() {
                course.sources.clone_from(&stream.sources);
                course.weights = vec![Vec::new(); stream.sources.len()];
            }
            if stream.weight.len() != course.weights.len() {
                continue;
            }
            course.steps.push(frames[at].step as f64);
            for (own, weight) in course.weights.iter_mut().zip(&stream.weight) {
                own.push(*weight);
            }
        }
        course
    }

    fn convex(&self) -> bool {
        let mut all = self.weights.iter().flatten();
        all.all(|weight| (-1e-6..=1.001).contains(weight))
    }

    /// Lower edges of the stacked areas, and the upper edge of the last.
    fn edges(&self) -> Vec<Vec<f64>> {
        let mut edges = vec![vec![0.0; self.steps.len()]];
        for weights in &self.weights {
            let below = &edges[edges.len() - 1];
            let edge = below.iter().zip(weights).map(|(a, b)| a + b).collect();
            edges.push(edge);
        }
        edges
    }

    /// `step 40: EMB 20 %, B1 61 %`
    fn words(&self, step: u64) -> Option<String> {
        let distance = |at: &usize| (self.steps[*at] - step as f64).abs();
        let places = 0..self.steps.len();
        let at = places.min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
        let convex = self.convex();
        let said = self.sources.iter().zip(&self.weights).map(|(name, own)| {
            let value = if convex {
                percent(own[at])
            } else {
                signed(own[at], 2)
            };
            format!("{} {value}", source_short(name))
        });
        let said: Vec<String> = said.collect();
        Some(format!("step {}: {}", grouped(step), said.join(", ")))
    }
}

/// Draw it.
pub(super) fn show(ui: &mut Ui, heard: &Heard, view: &mut View) {
    let Some((now, _)) = frame(heard, view) else {
        empty::say(
            ui,
            "No history yet",
            "When a model trains, this shows how one site changes what it reads.",
        );
        return;
    };
    if grid::streams(&now.sites) == 0 {
        empty::say(
            ui,
            "This mechanism has no depth weights",
            "There is no choice of sources to follow. Gates and Norms may have something to show.",
        );
        return;
    }
    ui.horizontal_wrapped(|ui| {
        pick(ui, &now.sites, view);
    });
    let Some(read) = chosen(&now.sites, view) else {
        return;
    };
    let course = Course::of(heard.frames(), read);
    let (dark, n) = (ui.visuals().dark_mode, course.sources.len());
    let names = course.sources.iter().enumerate();
    let names: Vec<(String, egui::Color32)> = names
        .map(|(at, name)| (source_short(name), source_colour(at, n, dark)))
        .collect();
    key(
        ui,
        names.iter().map(|(name, colour)| (name.as_str(), *colour)),
    );
    let height = (ui.available_height() - 24.0).max(90.0);
    let ground = ui.visuals().panel_fill;
    let convex = course.convex();
    let edges = course.edges();
    let axis = if convex {
        "mean weight, stacked"
    } else {
        "mean weight"
    };
    // The scrubber does for keys what a click does here.
    let mut plot = plain("history", height)
        .sense(Sense::CLICK)
        .x_axis_label("step")
        .y_axis_label(axis);
    if convex {
        plot = plot.include_y(0.0).include_y(1.0);
    }
    let shown = now.step;
    let response = plot.show(ui, |plot| {
        for (at, name) in course.sources.iter().enumerate() {
            let colour = source_colour(at, n, dark);
            let name = source_short(name);
            if convex {
                let area = FilledArea::new(name, &course.steps, &edges[at], &edges[at + 1]);
                plot.add(area.fill_color(colour).stroke(Stroke::new(1.0, ground)));
            } else {
                let points = course.steps.iter().zip(&course.weights[at]);
                let points: PlotPoints<'_> = points.map(|(&x, &y)| [x, y]).collect();
                plot.line(Line::new(name, points).color(colour));
            }
        }
        let moment = VLine::new("", shown as f64).color(ground).width(3.0);
        plot.vline(moment.allow_hover(false));
        let ink = if dark { 230 } else { 20 };
        let moment = VLine::new("", shown as f64).color(egui::Color32::from_gray(ink));
        plot.vline(moment.allow_hover(false));
        plot.pointer_coordinate().map(|point| point.x)
    });
    named(&response.response, "weights of this read over the training");
    let frames = heard.frames();
    let pointed = response.inner.filter(|_| response.response.hovered());
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a step, never negative"
    )]
    let under = pointed.and_then(|x| nearest(frames, x.max(0.0).round() as u64));
    if let Some(at) = under.filter(|_| response.response.clicked()) {
        view.moment = Moment::At(at);
    }
    let step = under.map_or(shown, |at| frames[at].step);
    let words = course.words(step).unwrap_or_default();
    ui.add(egui::Label::new(words).truncate());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_are_stacked() {
        let course = Course {
            sources: vec!["embed".into(), "partial".into()],
            steps: vec![0.0, 10.0],
            weights: vec![vec![0.5, 0.25], vec![0.5, 0.75]],
        };
        assert_eq!(
            course.edges(),
            [vec![0.0, 0.0], vec![0.5, 0.25], vec![1.0, 1.0]]
        );
        assert_eq!(
            course.words(9).as_deref(),
            Some("step 9: EMB 25 %, part 75 %")
        );
    }
}
