//! Size of what flows at each site, and of the gradient of each sublayer.

use egui::Ui;

use super::empty;
use super::plots::{PAIR, curve, key, log_marks, named, over_sites};
use super::shown::frame;
use crate::protocol::{Depth, Frame, SiteKind};
use crate::ui::heard::Heard;
use crate::ui::ticks::figure;
use crate::ui::view::View;

/// Above this ratio of largest to smallest, the axis is logarithmic.
const SPREAD: f64 = 20.0;

/// Whether the values need a logarithmic axis.
fn wide(values: &[f64]) -> bool {
    let positive = || values.iter().copied().filter(|v| *v > 0.0 && v.is_finite());
    let most = positive().fold(0.0, f64::max);
    let least = positive().fold(f64::INFINITY, f64::min);
    most > SPREAD * least
}

/// What kind of sublayer a site is: as the frame says, or as its number says.
fn kind(frame: &Frame, depth: &Depth) -> SiteKind {
    let known = frame.sites.iter().find(|site| site.site == depth.site);
    match known {
        Some(site) => site.kind,
        // The read-out is the last one.
        None => SiteKind::of(depth.site, frame.depth.last().map_or(0, |last| last.site)),
    }
}

/// Draw it.
pub(super) fn show(ui: &mut Ui, heard: &Heard, view: &View) {
    let found = frame(heard, view).map(|(frame, _)| frame);
    let Some(frame) = found.filter(|frame| !frame.depth.is_empty()) else {
        let sentence = if found.is_some() {
            "Norms are taken with live frames only: go to the newest frame, or let the model train on."
        } else {
            "When a model trains, this shows how large the signal is at each depth."
        };
        empty::say(ui, "No norms in this frame", sentence);
        return;
    };
    let sites: Vec<(u32, SiteKind)> = frame
        .depth
        .iter()
        .map(|depth| (depth.site, kind(frame, depth)))
        .collect();
    let values = |of: fn(&Depth) -> f64| -> Vec<f64> { frame.depth.iter().map(of).collect() };
    let (input, output) = (values(|d| d.input), values(|d| d.output));
    let gradient = values(|d| d.gradient.unwrap_or(f64::NAN));
    let known = gradient.iter().any(|value| value.is_finite());
    ui.label("Root mean square over tokens and channels");
    let names = ["read, before its norm", "written"];
    key(ui, names.into_iter().zip(PAIR));
    let rest = ui.available_height();
    // A second chart needs a line of words above it.
    let height = if known { (rest - 30.0) / 2.0 } else { rest };
    let height = height.max(70.0);
    chart(
        ui,
        "norms",
        height,
        &sites,
        &[("read, before its norm", &input), ("written", &output)],
    );
    if known {
        ui.label("Gradient norm of each sublayer's parameters").on_hover_text(
            "Of the last update's batch, before clipping, with respect to the sublayer's own weights and its norm's gain; at \
             the read-out: the last norm, and the head if it is not tied. With the embedding's and the mechanism's own \
             parameters, the squares add up to the square of the total in the curves.",
        );
        let name = "gradient of the sublayer's parameters";
        chart(ui, "gradient norms", height, &sites, &[(name, &gradient)]);
    }
}

/// Curves over depth; logarithmic if their values lie far apart.
fn chart(
    ui: &mut Ui,
    name: &str,
    height: f32,
    sites: &[(u32, SiteKind)],
    curves: &[(&str, &Vec<f64>)],
) {
    let all: Vec<f64> = curves
        .iter()
        .flat_map(|(_, values)| values.iter().copied())
        .collect();
    let log = wide(&all);
    let mut plot = over_sites(name, ui.available_width(), height, sites);
    if log {
        plot = plot.y_grid_spacer(log_marks);
        plot = plot.y_axis_formatter(|mark, _| figure(10f64.powf(mark.value)));
        plot = plot.y_axis_label("logarithmic");
    } else {
        plot = plot.include_y(0.0);
    }
    let chart = plot.show(ui, |plot| {
        for ((name, values), colour) in curves.iter().zip(PAIR) {
            let place = values.iter().enumerate().filter(|(_, value)| **value > 0.0);
            let points: Vec<(f64, f64)> = place
                .map(|(at, &value)| (at as f64, if log { value.log10() } else { value }))
                .collect();
            curve(plot, name, &points, colour);
        }
    });
    named(&chart.response, &format!("{name} over depth"));
}

#[cfg(test)]
mod tests {
    use super::wide;

    #[test]
    fn wide_spreads_are_logarithmic() {
        assert!(wide(&[0.1, 3.0]));
        assert!(!wide(&[1.0, 3.0, 0.0]));
        assert!(!wide(&[]));
    }
}
