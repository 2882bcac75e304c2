//! Figures as SVG: curves, and maps of weights.

use std::fmt::Write;

use super::element::escaped;
use crate::heat_map::colour;

/// Colours of curves on a light ground, told apart with any colour vision (after Okabe and Ito, 2008).
const COLOURS: [&str; 7] = [
    "#0072b2", "#d55e00", "#008a66", "#b85c95", "#c77f00", "#8f8400", "#505050",
];

/// Curves differ in their dashes as well, for grey printers.
const DASHES: [&str; 4] = ["", "6 3", "2 2", "8 2 2 2"];

const FRAME: &str = "xmlns=\"http://www.w3.org/2000/svg\" font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#222\"";

/// A curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// For the legend.
    pub name: String,
    /// By rising x.
    pub points: Vec<(f64, f64)>,
}

/// Round numbers that divide a range into about `wanted` parts: 1, 2 or 5 times a power of ten apart.
fn ticks(low: f64, high: f64, wanted: f64) -> Vec<f64> {
    let rough = ((high - low) / wanted).max(f64::MIN_POSITIVE);
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough)
        .unwrap_or(10.0 * power);
    let first = (low / step).ceil();
    (0..100)
        .map(|number| (first + f64::from(number)) * step)
        .take_while(|tick| *tick <= high + 1e-9 * step)
        .collect()
}

/// A tick as text: no more digits than its distance to the next one needs.
fn shown(tick: f64, step: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 12"
    )]
    let digits = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
    // Without a zero that has a sign.
    format!("{:.digits$}", if tick == 0.0 { 0.0 } else { tick })
}

/// The range of finite values, a little widened; `None` without any.
fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let bounds = values
        .filter(|value| value.is_finite())
        .fold(None, |bounds, value| {
            let (low, high): (f64, f64) = bounds.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        });
    let (low, high) = bounds?;
    let more = if high > low {
        0.04 * (high - low)
    } else {
        0.5 * low.abs().max(1e-3)
    };
    Some((low - more, high + more))
}

/// Curves over a common axis, with a legend.
#[must_use]
pub fn chart(title: &str, x_label: &str, y_label: &str, series: &[Series]) -> String {
    const WIDTH: f64 = 720.0;
    const LEFT: f64 = 62.0;
    const RIGHT: f64 = 12.0;
    const PLOT: f64 = 240.0;
    let legend_height = 18.0 * series.len() as f64;
    let (top, height) = (10.0, PLOT + 60.0 + legend_height);
    let points = || series.iter().flat_map(|one| one.points.iter().copied());
    let mut svg = format!(
        "<svg {FRAME} viewBox=\"0 0 {WIDTH} {height}\" role=\"img\"><title>{}</title>",
        escaped(title)
    );
    let ranges = range(points().map(|point| point.0)).zip(range(points().map(|point| point.1)));
    let Some(((x0, x1), (y0, y1))) = ranges else {
        _ = write!(
            svg,
            "<text x=\"20\" y=\"40\">nothing was recorded</text></svg>"
        );
        return svg;
    };
    let x_of = |x: f64| LEFT + (x - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT);
    let y_of = |y: f64| top + (y1 - y) / (y1 - y0) * PLOT;
    let grid = "stroke=\"#ddd\" stroke-width=\"1\"";
    let (xs, ys) = (ticks(x0, x1, 7.0), ticks(y0, y1, 6.0));
    let step = |ticks: &[f64]| match ticks {
        [one, two, ..] => two - one,
        _ => 1e-3,
    };
    for &tick in &ys {
        let y = y_of(tick);
        let right = WIDTH - RIGHT;
        _ = write!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" {grid}/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 6.0,
            y + 4.0,
            shown(tick, step(&ys))
        );
    }
    for &tick in &xs {
        let x = x_of(tick);
        let bottom = top + PLOT;
        _ = write!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{top}\" x2=\"{x:.1}\" y2=\"{bottom}\" {grid}/><text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            bottom + 16.0,
            shown(tick, step(&xs))
        );
    }
    let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
    _ = write!(
        svg,
        "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text><text transform=\"translate(14 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        top + PLOT + 34.0,
        escaped(x_label),
        top + PLOT / 2.0,
        escaped(y_label)
    );
    for (number, one) in series.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let dash = DASHES[number % DASHES.len()];
        let finite = |point: &&(f64, f64)| point.0.is_finite() && point.1.is_finite();
        let kept: Vec<&(f64, f64)> = one.points.iter().filter(finite).collect();
        let path: Vec<String> = kept
            .iter()
            .map(|(x, y)| format!("{:.1},{:.1}", x_of(*x), y_of(*y)))
            .collect();
        let style = format!("stroke=\"{colour}\" stroke-width=\"1.6\" stroke-dasharray=\"{dash}\"");
        _ = write!(
            svg,
            "<polyline fill=\"none\" {style} points=\"{}\"/>",
            path.join(" ")
        );
        if kept.len() <= 60 {
            for (x, y) in kept {
                _ = write!(
                    svg,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.2\" fill=\"{colour}\"/>",
                    x_of(*x),
                    y_of(*y)
                );
            }
        }
        let y = top + PLOT + 52.0 + 18.0 * number as f64;
        _ = write!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" {style}/><text x=\"{}\" y=\"{}\">{}</text>",
            LEFT + 30.0,
            LEFT + 38.0,
            y + 4.0,
            escaped(&one.name)
        );
    }
    svg + "</svg>"
}

/// A map of numbers: rows from the top, `None` where there is no such number.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// Names of the rows.
    pub rows: Vec<String>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// `[rows][columns]`
    pub cells: Vec<Vec<Option<f64>>>,
}

impl Map {
    /// With the numbers in the fields where there is room. Colours go from 0 to 1; of a negative number they show the size.
    #[must_use]
    pub fn svg(&self, title: &str) -> String {
        const LEFT: f64 = 66.0;
        const TOP: f64 = 22.0;
        const HEIGHT: f64 = 20.0;
        let columns = self.columns.len().max(1) as f64;
        let width = (640.0 / columns).clamp(10.0, 46.0);
        let (right, bottom) = (
            LEFT + width * columns + 8.0,
            TOP + HEIGHT * self.rows.len() as f64 + 6.0,
        );
        let mut svg = format!(
            "<svg {FRAME} class=\"map\" viewBox=\"0 0 {right:.0} {bottom:.0}\" width=\"{right:.0}\" role=\"img\"><title>{}</title>",
            escaped(title)
        );
        // Names that would overlap are left out, every second one first.
        let every = (34.0 / width).ceil().max(1.0);
        for (number, name) in self.columns.iter().enumerate() {
            if number as f64 % every == 0.0 {
                let x = LEFT + width * (number as f64 + 0.5);
                _ = write!(
                    svg,
                    "<text x=\"{x:.1}\" y=\"15\" text-anchor=\"middle\">{}</text>",
                    escaped(name)
                );
            }
        }
        for (row, (name, cells)) in self.rows.iter().zip(&self.cells).enumerate() {
            let y = TOP + HEIGHT * row as f64;
            _ = write!(
                svg,
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                y + 14.0,
                escaped(name)
            );
            for (column, cell) in cells.iter().enumerate() {
                let Some(value) = cell.filter(|value| value.is_finite()) else {
                    continue;
                };
                let x = LEFT + width * column as f64;
                let [r, g, b] = colour(value.abs());
                _ = write!(
                    svg,
                    "<rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{HEIGHT}\" fill=\"#{r:02x}{g:02x}{b:02x}\"><title>{} reads {}: {value:.4}</title></rect>",
                    escaped(name),
                    escaped(self.columns.get(column).map_or("", String::as_str))
                );
                if width >= 30.0 {
                    // Light letters on the dark half of the scale.
                    let ink = if value.abs() < 0.45 { "#fff" } else { "#000" };
                    _ = write!(
                        svg,
                        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\" fill=\"{ink}\">{value:.2}</text>",
                        x + width / 2.0,
                        y + 14.0
                    );
                }
            }
        }
        svg + "</svg>"
    }

    /// The same numbers as comma-separated values; names of sites and sources have no commas.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut csv = format!("row,{}\n", self.columns.join(","));
        for (name, cells) in self.rows.iter().zip(&self.cells) {
            let cells: Vec<String> = cells
                .iter()
                .map(|cell| cell.map_or_else(String::new, |value| value.to_string()))
                .collect();
            _ = writeln!(csv, "{name},{}", cells.join(","));
        }
        csv
    }
}

#[cfg(test)]
mod tests {
    use super::{Map, Series, chart, shown, ticks};

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(ticks(0.0, 100.0, 5.0), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        let small = ticks(1.23, 1.27, 5.0);
        let text: Vec<String> = small.iter().map(|tick| shown(*tick, 0.01)).collect();
        assert_eq!(text, ["1.23", "1.24", "1.25", "1.26", "1.27"]);
        assert!(ticks(-1.0, 1.0, 4.0).contains(&0.0));
    }

    #[test]
    fn a_chart_leaves_out_what_is_not_finite_and_never_writes_nan() {
        let points = vec![
            (1.0, 2.0),
            (2.0, f64::NAN),
            (3.0, f64::INFINITY),
            (4.0, 1.0),
        ];
        let name = "a<b".to_owned();
        let svg = chart("t", "x", "y", &[Series { name, points }]);
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(!svg.contains("NaN") && !svg.contains("inf") && svg.contains("a&lt;b"));
        let one = Series {
            name: "one".into(),
            points: vec![(1.0, 0.0)],
        };
        assert!(!chart("t", "x", "y", &[one]).contains("NaN"));
        assert!(chart("t", "x", "y", &[]).contains("nothing was recorded"));
    }

    #[test]
    fn a_map_has_a_field_for_each_number_that_exists() {
        let map = Map {
            rows: vec!["out".into(), "1 attn".into()],
            columns: vec!["EMB".into(), "B1".into()],
            cells: vec![vec![Some(0.25), Some(0.75)], vec![Some(1.0), None]],
        };
        let svg = map.svg("a map");
        assert_eq!(svg.matches("<rect").count(), 3);
        assert!(svg.contains("out reads B1: 0.7500"), "{svg}");
        assert_eq!(map.csv(), "row,EMB,B1\nout,0.25,0.75\n1 attn,1,\n");
    }
}
