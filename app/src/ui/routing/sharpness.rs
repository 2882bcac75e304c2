//! How far from uniform each site reads: largest weight and entropy, beside what uniform weights would give.

use egui::{Color32, Ui};
use egui_plot::{HLine, Line, LineStyle, PlotPoint, PlotPoints, Text};

use super::plots::{PAIR, curve, key, named, over_sites};
use super::shown::frame;
use super::{empty, grid};
use crate::protocol::{Site, SiteKind, Stream};
use crate::ui::heard::Heard;
use crate::ui::view::View;

/// Largest weights that the Delta Block paper reports for deep layers: attention residuals decay to about 0.2, Delta Block
/// keeps about 0.6.
const REFERENCES: [(f64, &str); 2] = [
    (0.2, "0.2: attention residuals, deep layers, as reported"),
    (0.6, "0.6: Delta Block, deep layers, as reported"),
];

/// One curve: a value for each site that has a choice.
fn values(
    sites: &[Site],
    stream: usize,
    value: impl Fn(&Stream) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let sites = sites.iter().enumerate();
    sites
        .filter_map(|(at, site)| {
            let stream = site.streams.get(stream)?;
            if stream.sources.len() < 2 {
                return None;
            }
            Some((at as f64, value(stream)?))
        })
        .collect()
}

/// Draw it.
pub(super) fn show(ui: &mut Ui, heard: &Heard, view: &View) {
    let Some((frame, _)) = frame(heard, view) else {
        empty::say(
            ui,
            "No weights yet",
            "When a model trains, this shows how decided each site is.",
        );
        return;
    };
    let sites: Vec<Site> = {
        let has = |site: &&Site| !site.streams.is_empty();
        frame.sites.iter().filter(has).cloned().collect()
    };
    let streams = grid::streams(&sites);
    let any = (0..streams).any(|s| !values(&sites, s, |stream| stream.max).is_empty());
    if !any {
        empty::say(
            ui,
            "No sharpness here",
            "Sharpness is the largest weight of a softmax. The weights of this mechanism do not sum to one, or no site has a choice.",
        );
        return;
    }
    let places: Vec<(u32, SiteKind)> = sites.iter().map(|s| (s.site, s.kind)).collect();
    let height = (0.5 * (ui.available_height() - 72.0)).max(80.0);
    let width = ui.available_width();
    let quiet = ui.visuals().weak_text_color();
    let title = |stream: usize| match streams {
        1 => "model".to_owned(),
        _ => format!("stream {stream}"),
    };
    let names: Vec<String> = (0..streams).map(title).collect();
    let mut colours: Vec<(&str, Color32)> = Vec::new();
    colours.extend(
        names
            .iter()
            .map(String::as_str)
            .zip(PAIR.into_iter().cycle()),
    );
    colours.push(("uniform, dashed", quiet));
    key(ui, colours.into_iter());
    ui.label("Largest weight of each token, mean over tokens").on_hover_text(
        "Dotted: what the paper on Delta Attention Residuals reports of its far larger models. A small model need not come near.",
    );
    let chart = over_sites("sharpness", width, height, &places)
        .include_y(0.0)
        .include_y(1.0)
        .show(ui, |plot| {
            for stream in 0..streams {
                let points = values(&sites, stream, |stream| stream.max);
                curve(plot, &title(stream), &points, PAIR[stream % 2]);
            }
            dashed(
                plot,
                "uniform (1/n)",
                &values(&sites, 0, |s| s.floor),
                quiet,
            );
            for (value, name) in REFERENCES {
                let style = LineStyle::dotted_dense();
                plot.hline(HLine::new(name, value).color(quiet).style(style).width(1.0));
                let at = PlotPoint::new(-0.45, value);
                let text = Text::new(name, at, name).anchor(egui::Align2::LEFT_BOTTOM);
                plot.text(text.color(quiet));
            }
        });
    named(&chart.response, "largest weight over depth");
    ui.label("Entropy in nats, mean over tokens");
    let chart = over_sites("entropy", width, height, &places)
        .include_y(0.0)
        .show(ui, |plot| {
            for stream in 0..streams {
                let points = values(&sites, stream, |stream| stream.entropy);
                curve(plot, &title(stream), &points, PAIR[stream % 2]);
            }
            let uniform = values(&sites, 0, |s| Some((s.sources.len() as f64).ln()));
            dashed(plot, "uniform (ln n)", &uniform, quiet);
        });
    named(&chart.response, "entropy over depth");
}

fn dashed(plot: &mut egui_plot::PlotUi<'_>, name: &str, values: &[(f64, f64)], colour: Color32) {
    let points: PlotPoints<'_> = values.iter().map(|&(x, y)| [x, y]).collect();
    let line = Line::new(name.to_owned(), points);
    plot.line(
        line.color(colour)
            .style(LineStyle::dashed_loose())
            .width(1.0),
    );
}
