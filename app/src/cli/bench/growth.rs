//! Training steps over layers, width and context: what grows faster than it should.

use braid_engine::bench::Size;
use serde::Serialize;

use super::measure::{Median, Subject, rounds};
use super::steps::{advance, mechanisms, trainer};
use super::{Bench, Failure};

/// From where all three grow.
const BASE: Size = Size {
    name: "base",
    width: 64,
    layers: 4,
    heads: 4,
    context: 64,
    sequences: 8,
    vocab: 65,
};

/// Mechanisms that are followed.
const FOLLOWED: [&str; 3] = ["standard", "delta block", "dar block"];

/// The step of a mechanism at a size.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    mechanism: &'static str,
    /// What grows: layers, width or context.
    axis: &'static str,
    value: u32,
    milliseconds: Median,
    /// Time per token and layer, over that at the first value in the same round; over width, per token, layer and width.
    over_first: Median,
}

/// The sizes along an axis. The tokens of a batch stay the same.
fn sizes(axis: &'static str) -> Vec<(u32, Size)> {
    let of = |value: u32| match axis {
        "layers" => Size {
            layers: value,
            ..BASE
        },
        "width" => Size {
            width: value,
            ..BASE
        },
        _ => Size {
            context: value,
            sequences: (BASE.batch().rows() / value).max(1),
            ..BASE
        },
    };
    let values: &[u32] = match axis {
        "layers" => &[4, 8, 16, 32],
        "width" => &[64, 128, 256],
        _ => &[64, 128, 256, 512],
    };
    values.iter().map(|&value| (value, of(value))).collect()
}

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for axis in ["layers", "width", "context"] {
        for name in FOLLOWED.into_iter().filter(|name| bench.wants(name)) {
            let sizes = sizes(axis);
            let mut trainers = Vec::new();
            for (_, size) in &sizes {
                let mut all = mechanisms(size.layers)?;
                all.retain(|mechanism| mechanism.name == name);
                for mechanism in all {
                    trainers.push(trainer(bench, size, mechanism.residual)?);
                }
            }
            let mut subjects = Vec::new();
            for trainer in &trainers {
                subjects.push(Subject::new(move |times| advance(trainer, times))?);
            }
            let seconds = rounds(&mut subjects, bench.rounds)?;
            drop(subjects);
            let work = |size: &Size| {
                let linear = size.layers * if axis == "width" { size.width } else { 1 };
                f64::from(size.batch().rows() * linear)
            };
            let scaled = |number: usize| -> Vec<f64> {
                let by = work(&sizes[number].1);
                seconds[number].iter().map(|s| s / by).collect()
            };
            for (number, &(value, _)) in sizes.iter().enumerate() {
                rows.push(Row {
                    mechanism: name,
                    axis,
                    value,
                    milliseconds: Median::of(seconds[number].iter().map(|s| s * 1e3).collect()),
                    over_first: Median::of_ratios(&scaled(number), &scaled(0)),
                });
            }
        }
    }
    Ok(rows)
}

pub(super) fn lines(rows: &[Row]) -> Vec<String> {
    let mut lines = vec![format!(
        "\n{:<9} {:>6} {:<15} {:>10}  time per token and layer (and width), over the first",
        "growth", "", "", "ms"
    )];
    for row in rows {
        lines.push(format!(
            "{:<9} {:>6} {:<15} {:>10.2}  {}",
            row.axis,
            row.value,
            row.mechanism,
            row.milliseconds.median,
            row.over_first.text(3)
        ));
    }
    lines
}
