//! The gradient norm of each sublayer over training, from the recorded frames.

use super::curve::{Curve, Point};
use super::heard::Series;
use super::view::Axis;
use crate::names::site_label;
use crate::protocol::{Frame, SiteKind};

/// A curve for each site, bottom first. Frames are bounded in number, so they are made again when the frames change.
#[derive(Debug, Default)]
pub(super) struct Depths {
    made_of: u64,
    curves: Vec<(String, Curve)>,
}

/// Whether a frame has gradients.
pub(super) fn known(series: &Series) -> bool {
    series.frames.list().iter().any(has_gradient)
}

fn has_gradient(frame: &Frame) -> bool {
    frame.depth.iter().any(|depth| depth.gradient.is_some())
}

impl Depths {
    /// The curves with their names; empty if no frame has a gradient.
    pub(super) fn of(&mut self, series: &Series) -> &[(String, Curve)] {
        let source = series.frames.generation();
        if self.made_of != source {
            (self.made_of, self.curves) = (source, curves(series));
        }
        &self.curves
    }
}

fn curves(series: &Series) -> Vec<(String, Curve)> {
    let known = series
        .frames
        .list()
        .iter()
        .filter(|frame| has_gradient(frame));
    let mut curves: Vec<(String, Curve)> = Vec::new();
    for frame in known {
        let step = frame.step as f64;
        let place = |axis| series.loss.place(axis, step).unwrap_or(0.0);
        let (tokens, seconds) = (place(Axis::Tokens), place(Axis::Time));
        let last = frame.depth.last().map_or(0, |depth| depth.site);
        for (at, depth) in frame.depth.iter().enumerate() {
            if at == curves.len() {
                let name = site_label(depth.site, SiteKind::of(depth.site, last));
                curves.push((name, Curve::default()));
            }
            curves[at].1.push(Point {
                step,
                tokens,
                seconds,
                value: depth.gradient.unwrap_or(f64::NAN),
            });
        }
    }
    curves
}
