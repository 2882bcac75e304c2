//! The routing weights of a model as text: rows are sites, the read-out on top; columns are sources, the embedding at the
//! left.
//!
//! Shades and colours have a fixed scale from 0 to 1. Signed weights have one of sizes, even in the logarithm, with a minus in
//! front of the negative ones. A source that does not exist at a site is left empty, so the map has
//! the shape of a staircase. A mass is not an importance: a source may weigh much and matter little.

use std::fmt::Write;

use braid_engine::analysis::{SiteStats, StreamStats, Weighting};

use crate::names::{record_label, source_short};

/// What the terminal can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paint {
    /// Characters only.
    #[default]
    Shades,
    /// 256 colours.
    Colours256,
    /// 24-bit colours.
    TrueColour,
}

/// Shades from weight 0 to 1. A source that exists is never blank.
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];

/// Points of a colour scale that grows lighter evenly and can be told apart by colour-blind eyes: dark violet to yellow.
const SCALE: [[f64; 3]; 5] = [
    [68.0, 1.0, 84.0],
    [59.0, 82.0, 139.0],
    [33.0, 145.0, 140.0],
    [94.0, 201.0, 98.0],
    [253.0, 231.0, 37.0],
];

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and 255"
)]
pub(crate) fn colour(weight: f64) -> [u8; 3] {
    let at = weight.clamp(0.0, 1.0) * (SCALE.len() - 1) as f64;
    let low = (at as usize).min(SCALE.len() - 2);
    let part = at - low as f64;
    std::array::from_fn(|c| {
        (SCALE[low][c] + part * (SCALE[low + 1][c] - SCALE[low][c])).round() as u8
    })
}

/// Where a weight lies on the scale from 0 to 1. That of signed weights has its quarters at sizes of e^-3, e^-2, e^-1 and 1,
/// the ticks of the DenseFormer paper.
fn strength(weight: f64, weighting: Weighting) -> f64 {
    let strength = match weighting {
        Weighting::Signed => 1.0 + weight.abs().ln() / 4.0,
        _ => weight,
    };
    strength.clamp(0.0, 1.0)
}

/// One cell of `width` characters; `None` is a source that does not exist.
pub(crate) fn cell(
    weight: Option<f64>,
    width: usize,
    paint: Paint,
    weighting: Weighting,
) -> String {
    let Some(weight) = weight.filter(|weight| weight.is_finite()) else {
        return " ".repeat(width);
    };
    let negative = weighting == Weighting::Signed && weight < 0.0;
    let sign = if negative { "-" } else { "" };
    let blank = format!("{sign:<width$}");
    let strength = strength(weight, weighting);
    let [r, g, b] = colour(strength);
    match paint {
        Paint::Shades => {
            // The darkest shade of signed weights is for 1 and beyond.
            let steps = match weighting {
                Weighting::Signed => SHADES.len() - 1,
                _ => SHADES.len(),
            };
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "at most 5"
            )]
            let shade = (strength * steps as f64) as usize;
            let shade = String::from(SHADES[shade.min(SHADES.len() - 1)]);
            sign.to_owned() + &shade.repeat(width - sign.len())
        }
        Paint::Colours256 => {
            // The 6 x 6 x 6 cube of the 256 colours has steps at 0, 95, 135, .., 255.
            let step = |v: u8| {
                if v < 48 {
                    0
                } else {
                    (u16::from(v.max(75)) - 35) / 40
                }
            };
            let index = 16 + 36 * step(r) + 6 * step(g) + step(b);
            format!("\x1b[48;5;{index}m{blank}\x1b[0m")
        }
        Paint::TrueColour => format!("\x1b[48;2;{r};{g};{b}m{blank}\x1b[0m"),
    }
}

/// All sources in the order of their creation; what is current (`partial`, `null`) last.
fn columns(sites: &[SiteStats]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let streams = || sites.iter().flat_map(|site| &site.streams);
    for source in streams().flat_map(|stream| &stream.sources) {
        if !names.contains(source) {
            names.push(source.clone());
        }
    }
    names.sort_by_key(|name| match name.as_str() {
        "partial" => 1,
        "null" => 2,
        _ => 0,
    });
    names
}

/// `  4 mlp`, `    out`: as in the window; the numbers of layers end in one column.
fn label(site: &SiteStats) -> String {
    let name = record_label(site.site, site.kind);
    match name.strip_suffix("mlp") {
        Some(layer) => format!("{:>8}", format!("{layer}mlp ")),
        None => format!("{name:>8}"),
    }
}

/// How a map is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    /// Characters of a cell.
    cell: usize,
    /// Streams beside each other.
    abreast: usize,
}

const LABEL: usize = 9;
/// ` 0.31/0.14`
const SHARPNESS: usize = 10;
const GAP: usize = 2;

fn layout(columns: usize, streams: usize, width: usize) -> Layout {
    for abreast in [streams, 1] {
        for cell in [4, 3, 2, 1] {
            let needed = LABEL + abreast * (columns * cell + SHARPNESS) + (abreast - 1) * GAP;
            if needed <= width {
                return Layout { cell, abreast };
            }
        }
    }
    Layout {
        cell: 1,
        abreast: 1,
    }
}

fn weight_of(stream: &StreamStats, source: &str) -> Option<f64> {
    let at = stream.sources.iter().position(|name| name == source)?;
    stream.weight.get(at).copied()
}

/// ` 0.31/0.14`, as far as there is such a thing.
fn sharpness(stats: &StreamStats) -> String {
    let mut text = String::new();
    if let Some(max) = stats.max {
        let _ = write!(text, " {max:.2}");
    }
    if let Some(floor) = stats.floor {
        let _ = write!(text, "/{floor:.2}");
    }
    text
}

/// The map; empty if the mechanism routes nothing. At most `width` characters a line, if the number of sources allows.
#[must_use]
pub fn heat_map(sites: &[SiteStats], paint: Paint, width: usize) -> String {
    let streams = sites
        .iter()
        .map(|site| site.streams.len())
        .max()
        .unwrap_or(0);
    if streams == 0 {
        return String::new();
    }
    let names = columns(sites);
    let Layout {
        cell: size,
        abreast,
    } = layout(names.len(), streams, width);
    let all = || sites.iter().flat_map(|site| &site.streams);
    let weighting = all().map(|stream| stream.weighting).next();
    let weighting = weighting.unwrap_or_default();
    let mut out = String::new();
    for first in (0..streams).step_by(abreast) {
        let shown = first..streams.min(first + abreast);
        if streams > 1 {
            let mut line = " ".repeat(LABEL);
            for stream in shown.clone() {
                let title = format!("stream {stream}");
                let width = names.len() * size + SHARPNESS + GAP;
                let _ = write!(line, "{title:<width$}");
            }
            let _ = writeln!(out, "{}", line.trim_end());
        }
        for site in sites.iter().rev().filter(|site| !site.streams.is_empty()) {
            let mut line = format!("{:<LABEL$}", label(site));
            for stream in shown.clone() {
                if stream > first {
                    line.push_str(&" ".repeat(GAP));
                }
                let Some(stats) = site.streams.get(stream) else {
                    line.push_str(&" ".repeat(names.len() * size + SHARPNESS));
                    continue;
                };
                for name in &names {
                    line.push_str(&cell(weight_of(stats, name), size, paint, weighting));
                }
                let _ = write!(line, "{:<SHARPNESS$}", sharpness(stats));
            }
            let _ = writeln!(out, "{}", line.trim_end());
        }
        let mut line = " ".repeat(LABEL);
        for stream in shown {
            if stream > first {
                line.push_str(&" ".repeat(GAP));
            }
            line.push_str(&axis(&names, size));
            let title = match weighting {
                Weighting::Softmax => " max/floor",
                Weighting::Sigmoid => " max",
                Weighting::Signed => "",
            };
            let _ = write!(line, "{title:<SHARPNESS$}");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out.push_str(&legend(&names, paint, weighting));
    out
}

/// Names under the columns, as many as have room.
fn axis(names: &[String], size: usize) -> String {
    let mut line: Vec<char> = vec![' '; names.len() * size];
    let mut free = 0;
    for (column, name) in names.iter().enumerate() {
        let name: Vec<char> = source_short(name).chars().collect();
        let at = column * size;
        // The last name is cut where its column ends.
        let room = line.len().saturating_sub(at);
        let name = &name[..name.len().min(room)];
        if at >= free {
            line[at..at + name.len()].copy_from_slice(name);
            free = at + name.len() + usize::from(name.len() > size - 1 && size < 4);
        }
    }
    line.into_iter().collect()
}

/// What the shades and colours mean.
fn scale(paint: Paint, weighting: Weighting) -> String {
    let mut line = match weighting {
        Weighting::Signed => "size of the weight ".to_owned(),
        _ => "mean weight ".to_owned(),
    };
    match (paint, weighting) {
        (Paint::Shades, Weighting::Signed) => {
            for (shade, from) in SHADES.iter().zip(["0", "0.05", "0.14", "0.37", "1.."]) {
                let _ = write!(line, " {shade} {from}");
            }
        }
        (Paint::Shades, _) => {
            for (index, shade) in SHADES.iter().enumerate() {
                let from = index as f64 / SHADES.len() as f64;
                let _ = write!(line, " {shade} {from:.1}");
            }
            line.push_str("..1.0");
        }
        (_, Weighting::Signed) => {
            line.push_str(" 0.02 ");
            for step in 0..=20 {
                let weight = (f64::from(step) / 5.0 - 4.0).exp();
                line.push_str(&cell(Some(weight), 1, paint, weighting));
            }
            line.push_str(" 1..");
        }
        _ => {
            line.push_str(" 0 ");
            for step in 0..=20 {
                line.push_str(&cell(Some(f64::from(step) / 20.0), 1, paint, weighting));
            }
            line.push_str(" 1");
        }
    }
    if weighting == Weighting::Signed {
        line.push_str(", - negative");
    }
    line
}

fn legend(names: &[String], paint: Paint, weighting: Weighting) -> String {
    let mut line = scale(paint, weighting);
    line.push('\n');
    line.push_str("columns: EMB embedding");
    let has = |test: fn(&str) -> bool| names.iter().any(|name| test(name));
    if has(|name| name.starts_with("block ")) {
        line.push_str(", B1 B2 .. blocks");
    }
    if has(|name| name.starts_with("layer ")) {
        line.push_str(", L1 L2 .. outputs of layers");
    }
    if has(|name| name.starts_with("state ")) {
        line.push_str(", S1 S2 .. states after so many sublayers");
    }
    if has(|name| name.starts_with("attn ")) {
        line.push_str(", A1 M1 .. outputs of attention and feed-forward");
    }
    if has(|name| name == "partial") {
        line.push_str(", part the unfinished block");
    }
    if has(|name| name == "null") {
        line.push_str(", null nothing");
    }
    line.push_str(match weighting {
        Weighting::Softmax => {
            "\nmax: mean over tokens of the largest weight; floor: what it would be if all weighed the same\n"
        }
        Weighting::Sigmoid => {
            "\nmax: mean over tokens of the largest weight; the weights of a site need not sum to 1\n"
        }
        Weighting::Signed => "\nthe weights of a site may be negative and need not sum to 1\n",
    });
    line
}
