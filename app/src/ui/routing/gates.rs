//! Gates of two-stream mechanisms over depth and time; read, write and mixing of hyper-connections as small heat maps.

use egui::{ScrollArea, Ui, vec2};
use egui_plot::{Line, PlotPoints};

use super::plots::{PAIR, curve, key, named, over_sites, plain, thinned};
use super::scale::{Range, Scale};
use super::shown::frame;
use super::table::Table;
use super::{empty, heat};
use crate::names::{site_label, site_words};
use crate::protocol::{Site, SiteKind};
use crate::ui::heard::Heard;
use crate::ui::view::View;

/// A gate: its name, what it does, and its values at a site, one a stream.
struct Gate {
    title: &'static str,
    value: fn(&Site) -> Option<Vec<f64>>,
}

const GATES: [Gate; 3] = [
    Gate {
        title: "α: weight of each stream in what a sublayer reads",
        value: |site| site.alpha.clone(),
    },
    Gate {
        title: "β: factor with which each stream takes an output in",
        value: |site| site.beta.clone(),
    },
    Gate {
        title: "ρ: share of a stream's own partial sum, the same for both",
        value: |site| site.rho.map(|rho| vec![rho]),
    },
];

/// Draw it.
pub(super) fn show(ui: &mut Ui, heard: &Heard, view: &mut View) {
    let Some((frame, _)) = frame(heard, view) else {
        empty::say(
            ui,
            "No gates yet",
            "When a model with several streams trains, this shows how it reads, writes and mixes them.",
        );
        return;
    };
    let sites = &frame.sites;
    let gated: Vec<&Gate> = GATES
        .iter()
        .filter(|gate| sites.iter().any(|site| (gate.value)(site).is_some()))
        .collect();
    if !gated.is_empty() {
        curves(ui, heard, sites, &gated, view);
    } else if sites
        .iter()
        .any(|s| s.mix.is_some() || s.read.is_some() || s.write.is_some())
    {
        mixing(ui, sites);
    } else {
        empty::say(
            ui,
            "This mechanism has no gates",
            "It keeps one stream, and adds every output to it as it is.",
        );
    }
}

/// The site whose gates are followed over time: the selected one, or the last that has some.
fn followed(sites: &[Site], gates: &[&Gate], view: &View) -> Option<(u32, SiteKind)> {
    let has = |site: &&Site| gates.iter().any(|gate| (gate.value)(site).is_some());
    let selected = view.selected.map(|(site, _)| site);
    let found = sites.iter().find(|s| Some(s.site) == selected && has(s));
    let found = found.or_else(|| sites.iter().rev().find(has))?;
    Some((found.site, found.kind))
}

fn stream(at: usize, of: usize) -> String {
    if of < 2 {
        "both streams".into()
    } else {
        format!("stream {at}")
    }
}

/// Each gate over depth at this moment, and over the training at one site.
fn curves(ui: &mut Ui, heard: &Heard, sites: &[Site], gates: &[&Gate], view: &View) {
    let Some((site, kind)) = followed(sites, gates, view) else {
        return;
    };
    let names: Vec<(u32, SiteKind)> = sites.iter().map(|s| (s.site, s.kind)).collect();
    ui.weak(
        "Gates are learned. Left: over depth, at the step above. Right: at one site, over the training; select another in the map.",
    );
    let two = ["stream 0", "stream 1"];
    key(ui, two.into_iter().zip(PAIR));
    let height = (ui.available_height() / gates.len() as f32 - 34.0).clamp(76.0, 190.0);
    ScrollArea::vertical().show(ui, |ui| {
        let side = ui.available_width() > 460.0;
        for (index, gate) in gates.iter().enumerate() {
            ui.label(gate.title);
            let width = ui.available_width();
            let (depth, time) = if side {
                (0.6 * width - 6.0, 0.4 * width)
            } else {
                (width, width)
            };
            let draw = |ui: &mut Ui| {
                ui.allocate_ui(vec2(depth, height), |ui| {
                    over_depth(ui, index, gate, sites, &names, vec2(depth, height));
                });
                ui.allocate_ui(vec2(time, height), |ui| {
                    let title = format!("{}, step", site_words(site, kind));
                    over_time(ui, index, gate, heard, site, &title, height);
                });
            };
            if side {
                ui.horizontal_top(draw);
            } else {
                ui.vertical(draw);
            }
        }
    });
}

fn over_depth(
    ui: &mut Ui,
    index: usize,
    gate: &Gate,
    sites: &[Site],
    names: &[(u32, SiteKind)],
    size: egui::Vec2,
) {
    let found = sites.iter().enumerate();
    let found: Vec<(f64, Vec<f64>)> = found
        .filter_map(|(at, site)| Some((at as f64, (gate.value)(site)?)))
        .collect();
    let streams = found.iter().map(|(_, v)| v.len()).max().unwrap_or(0);
    let chart = over_sites(&format!("gate over depth {index}"), size.x, size.y, names)
        .include_y(0.0)
        .include_y(1.0)
        .show(ui, |plot| {
            for at in 0..streams {
                let values = found.iter();
                let values: Vec<(f64, f64)> = values
                    .filter_map(|(x, values)| Some((*x, *values.get(at)?)))
                    .collect();
                curve(plot, &stream(at, streams), &values, PAIR[at % 2]);
            }
        });
    named(&chart.response, &format!("{} over depth", gate.title));
}

fn over_time(
    ui: &mut Ui,
    index: usize,
    gate: &Gate,
    heard: &Heard,
    site: u32,
    title: &str,
    height: f32,
) {
    let frames = heard.frames();
    let mut series: Vec<Vec<[f64; 2]>> = Vec::new();
    for at in thinned(frames.len()) {
        let found = frames[at].sites.iter().find(|own| own.site == site);
        let Some(values) = found.and_then(gate.value) else {
            continue;
        };
        series.resize_with(series.len().max(values.len()), Vec::new);
        for (points, value) in series.iter_mut().zip(values) {
            points.push([frames[at].step as f64, value]);
        }
    }
    let chart = plain(&format!("gate over time {index}"), height)
        .include_y(0.0)
        .include_y(1.0)
        .x_axis_label(title.to_owned())
        .show(ui, |plot| {
            let streams = series.len();
            for (at, points) in series.into_iter().enumerate() {
                let line = Line::new(stream(at, streams), PlotPoints::from(points));
                plot.line(line.color(PAIR[at % 2]));
            }
        });
    named(
        &chart.response,
        &format!("{} over the training", gate.title),
    );
}

/// A card for each site: read weights, write weights, mixing matrix.
fn mixing(ui: &mut Ui, sites: &[Site]) {
    let values = sites.iter().flat_map(|site| {
        let vectors = site.read.iter().chain(&site.write).flatten();
        vectors.chain(site.mix.iter().flatten().flatten()).copied()
    });
    let scale = Scale::of(values, Range::Unit);
    ui.horizontal_wrapped(|ui| {
        ui.label("Rows: read weights, write weights, mixing matrix; columns: streams");
        heat::legend(ui, scale, "weight");
    });
    ScrollArea::vertical().show(ui, |ui| {
        ui.horizontal_wrapped(|ui| {
            ui.spacing_mut().item_spacing = vec2(14.0, 10.0);
            for site in sites {
                ui.allocate_ui(vec2(150.0, 170.0), |ui| {
                    ui.vertical(|ui| card(ui, site, scale));
                });
            }
        });
    });
}

fn card(ui: &mut Ui, site: &Site, scale: Scale) {
    let mut rows: Vec<(String, &Vec<f64>)> = Vec::new();
    rows.extend(site.read.iter().map(|read| ("read".to_owned(), read)));
    rows.extend(site.write.iter().map(|write| ("write".to_owned(), write)));
    let mix = site.mix.iter().flatten().enumerate();
    rows.extend(mix.map(|(at, row)| (format!("mix {at}"), row)));
    let widest = rows.iter().map(|(_, row)| row.len()).max().unwrap_or(0);
    let columns: Vec<String> = (0..widest).map(|at| at.to_string()).collect();
    let names: Vec<String> = rows.iter().map(|(name, _)| name.clone()).collect();
    let title = site_label(site.site, site.kind);
    ui.strong(&title);
    let table = Table {
        name: &format!("streams of {title}"),
        rows: &names,
        tokens: false,
        columns: &columns,
        bottom_up: false,
        scale,
        strong: None,
    };
    table.show(ui, vec2(150.0, 150.0), |row, column| {
        rows[row].1.get(column).copied()
    });
}
