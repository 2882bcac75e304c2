//! What the charts of this panel share: their look, an axis of sites, and the choice of a read.

use std::ops::RangeInclusive;

use egui::{Color32, ComboBox, Rect, Response, Role, Sense, Ui, WidgetInfo, vec2};
use egui_plot::{GridInput, GridMark, Line, Plot, PlotPoints, Points};

use super::scale::{Scale, round_up, tick};
use super::words::sharpest;
use crate::names::{site_label, site_words};
use crate::protocol::{Site, SiteKind};
use crate::ui::view::View;

/// Colours of two streams or two quantities, told apart by every eye.
pub(super) const PAIR: [Color32; 2] = [
    Color32::from_rgb(0x2f, 0x8f, 0xd1),
    Color32::from_rgb(0xe0, 0x82, 0x2a),
];

/// Most points of a curve: more than a panel has pixels.
pub(super) const MOST_POINTS: usize = 400;

/// What a curve or an area is called, and its colour: above a chart, where it hides nothing.
pub(super) fn key<'a>(ui: &mut Ui, names: impl Iterator<Item = (&'a str, Color32)>) {
    ui.horizontal_wrapped(|ui| {
        for (name, colour) in names {
            let (rect, _) = ui.allocate_exact_size(vec2(10.0, 12.0), Sense::hover());
            let square = Rect::from_center_size(rect.center(), vec2(9.0, 9.0));
            ui.painter().rect_filled(square, 2.0, colour);
            ui.label(name);
            ui.add_space(4.0);
        }
    });
}

/// Four or five round marks, each with its number.
fn few_marks(input: GridInput) -> Vec<GridMark> {
    let (from, to) = input.bounds;
    let step = round_up((to - from) / 5.0);
    if !step.is_finite() || step <= 0.0 {
        return Vec::new();
    }
    let mut marks = Vec::new();
    let mut value = (from / step).ceil() * step;
    while value <= to && marks.len() < 12 {
        marks.push(GridMark {
            value,
            // The larger the step of a mark, the stronger its number is written.
            step_size: STRONG * (to - from),
        });
        value += step;
    }
    marks
}

/// Marks at 1, 2 and 5 times powers of ten, on an axis of decimal logarithms; powers only where those are too many.
pub(super) fn log_marks(input: GridInput) -> Vec<GridMark> {
    let (from, to) = input.bounds;
    if !(to - from).is_finite() || to - from > 24.0 {
        return Vec::new();
    }
    let parts: &[f64] = if to - from > 2.0 {
        &[1.0]
    } else {
        &[1.0, 2.0, 5.0]
    };
    let mut marks = Vec::new();
    let mut power = from.floor();
    while power <= to {
        for part in parts {
            let value = power + part.log10();
            if (from..=to).contains(&value) {
                marks.push(GridMark {
                    value,
                    step_size: STRONG * (to - from),
                });
            }
        }
        power += 1.0;
    }
    marks
}

/// Marks with so many times the height of the chart as their step are written in full strength.
const STRONG: f64 = 10.0;

/// What a chart shows, for a screen reader.
pub(super) fn named(chart: &Response, words: &str) {
    chart.widget_info(|| WidgetInfo::labeled(Role::Image, true, words));
}

/// A chart that stays where it is: no zoom, no drag. There is nothing to do in it, so Tab passes it by.
pub(super) fn plain<'a>(name: &str, height: f32) -> Plot<'a> {
    Plot::new(name.to_owned())
        .sense(Sense::hover())
        .y_grid_spacer(few_marks)
        .y_axis_formatter(|mark, _| tick(mark.value))
        .grid_color(Color32::from_gray(128).gamma_multiply(0.3))
        .height(height)
        .allow_zoom(false)
        .allow_drag(false)
        .allow_scroll(false)
        .allow_boxed_zoom(false)
        .allow_axis_zoom_drag(false)
        .show_grid([false, true])
}

/// Every how manieth of `count` marks has room, when one needs `room` points.
fn every(count: usize, width: f32, room: f32) -> usize {
    let fit = (width / room).max(1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a small positive number"
    )]
    let every = (count as f32 / fit).ceil() as usize;
    every.max(1)
}

/// A chart over depth: one mark a site, named, as many as have room.
pub(super) fn over_sites<'a>(
    name: &str,
    width: f32,
    height: f32,
    sites: &[(u32, SiteKind)],
) -> Plot<'a> {
    let labels: Vec<String> = sites.iter().map(|&(s, kind)| site_label(s, kind)).collect();
    let (count, step) = (labels.len(), every(labels.len(), width - 50.0, 44.0));
    let marks = move |_: GridInput| -> Vec<GridMark> {
        (0..count)
            .step_by(step)
            .map(|at| GridMark {
                value: at as f64,
                step_size: STRONG * count as f64,
            })
            .collect()
    };
    let label = move |mark: GridMark, _: &RangeInclusive<f64>| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a mark's place"
        )]
        let at = mark.value.max(0.0).round() as usize;
        labels.get(at).cloned().unwrap_or_default()
    };
    plain(name, height)
        .x_grid_spacer(marks)
        .x_axis_formatter(label)
        .include_x(-0.5)
        .include_x(count as f64 - 0.5)
}

/// A curve over depth with a dot at each site. NaN is a gap.
pub(super) fn curve(
    plot: &mut egui_plot::PlotUi<'_>,
    name: &str,
    values: &[(f64, f64)],
    colour: Color32,
) {
    let known = || values.iter().filter(|(_, y)| y.is_finite());
    let points: PlotPoints<'_> = known().map(|&(x, y)| [x, y]).collect();
    plot.line(Line::new(name.to_owned(), points).color(colour).width(1.5));
    let dots: PlotPoints<'_> = known().map(|&(x, y)| [x, y]).collect();
    plot.points(Points::new(name.to_owned(), dots).color(colour).radius(2.5));
}

/// The colour of the `at`th of `n` sources: dark for early ones, light for late ones.
pub(super) fn source_colour(at: usize, n: usize, dark: bool) -> Color32 {
    let place = at as f32 / n.saturating_sub(1).max(1) as f32;
    Scale::Sequential { most: 1.0 }.colour_at(0.04 + 0.92 * place, dark)
}

/// The colour of the `at`th of `n` lines over time: as [`source_colour`], without the end that is lost on the ground.
pub(in crate::ui) fn line_colour(at: usize, n: usize, dark: bool) -> Color32 {
    let place = at as f32 / n.saturating_sub(1).max(1) as f32;
    let (from, to) = if dark { (0.3, 1.0) } else { (0.0, 0.75) };
    Scale::Sequential { most: 1.0 }.colour_at(from + (to - from) * place, dark)
}

/// At most [`MOST_POINTS`] of `count` places, the last among them.
pub(super) fn thinned(count: usize) -> Vec<usize> {
    let step = count.div_ceil(MOST_POINTS).max(1);
    let mut places: Vec<usize> = (0..count).step_by(step).collect();
    if let Some(last) = count.checked_sub(1)
        && places.last() != Some(&last)
    {
        places.push(last);
    }
    places
}

/// The selected read, or the sharpest one, or the last.
pub(super) fn chosen(sites: &[Site], view: &View) -> Option<(u32, usize)> {
    let exists = |&(site, stream): &(u32, usize)| {
        let found = sites.iter().find(|own| own.site == site);
        found.is_some_and(|site| stream < site.streams.len())
    };
    let last = || {
        let site = sites.iter().rev().find(|site| !site.streams.is_empty())?;
        Some((site.site, 0))
    };
    view.selected
        .filter(exists)
        .or_else(|| sharpest(sites))
        .or_else(last)
}

/// A list to choose a read from.
pub(super) fn pick(ui: &mut Ui, sites: &[Site], view: &mut View) -> Option<(u32, usize)> {
    let now = chosen(sites, view)?;
    let words = |site: &Site, stream: usize| {
        let mut words = site_words(site.site, site.kind);
        if site.streams.len() > 1 {
            words.push_str(&format!(", stream {stream}"));
        }
        words
    };
    let text = sites.iter().find(|site| site.site == now.0);
    let text = text.map_or_else(String::new, |site| words(site, now.1));
    let label = ui.weak("read");
    let combo = ComboBox::from_id_salt("read")
        .selected_text(text)
        .width(190.0)
        .show_ui(ui, |ui| {
            for site in sites.iter().rev() {
                for stream in 0..site.streams.len() {
                    let read = (site.site, stream);
                    if ui
                        .selectable_label(read == now, words(site, stream))
                        .clicked()
                    {
                        (view.selected, view.source) = (Some(read), None);
                    }
                }
            }
        });
    combo.response.labelled_by(label.id);
    chosen(sites, view)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_histories_are_thinned_and_end_at_the_end() {
        assert_eq!(thinned(3), [0, 1, 2]);
        let places = thinned(2048);
        assert!(places.len() <= MOST_POINTS + 1);
        assert_eq!(places.last(), Some(&2047));
        assert_eq!(thinned(0), [] as [usize; 0]);
    }
}
