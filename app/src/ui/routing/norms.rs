//! Size of what flows at each site.

use egui::Ui;

use super::empty;
use super::plots::{PAIR, curve, key, over_sites};
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
    let log = wide(&[input.as_slice(), output.as_slice()].concat());
    let points = |values: &[f64]| -> Vec<(f64, f64)> {
        let place = values.iter().enumerate();
        place
            .filter(|(_, value)| **value > 0.0)
            .map(|(at, &value)| (at as f64, if log { value.log10() } else { value }))
            .collect()
    };
    ui.label("Root mean square over tokens and channels");
    let names = ["read, before its norm", "written"];
    key(ui, names.into_iter().zip(PAIR));
    let (width, height) = (ui.available_width(), ui.available_height().max(80.0));
    let mut plot = over_sites("norms", width, height, &sites);
    if log {
        plot = plot.y_axis_formatter(|mark, _| figure(10f64.powf(mark.value)));
        plot = plot.y_axis_label("logarithmic");
    } else {
        plot = plot.include_y(0.0);
    }
    plot.show(ui, |plot| {
        curve(plot, "read, before its norm", &points(&input), PAIR[0]);
        curve(plot, "written", &points(&output), PAIR[1]);
    });
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
