//! One curve of a training: it grows at its end, is cut by a rewind, and can be drawn at any zoom.

use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU64, Ordering};

use super::decimate::Extremes;
use super::view::Axis;

/// One point of the training curves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Updates done.
    pub step: f64,
    /// Tokens seen.
    pub tokens: f64,
    /// Seconds of training.
    pub seconds: f64,
    /// The value; NaN: a gap.
    pub value: f64,
}

impl Point {
    /// Where it lies on an axis.
    #[must_use]
    pub fn at(&self, axis: Axis) -> f64 {
        match axis {
            Axis::Step => self.step,
            Axis::Tokens => self.tokens,
            Axis::Time => self.seconds,
        }
    }
}

/// Points in the order of training, with what it takes to draw millions of them. Reads like a slice of points.
#[derive(Clone, Debug)]
pub struct Curve {
    points: Vec<Point>,
    extremes: Extremes,
    /// Positions of the values that are not finite.
    gaps: Vec<usize>,
    generation: u64,
}

/// Source of [`Curve::generation`].
static GENERATIONS: AtomicU64 = AtomicU64::new(0);

impl Default for Curve {
    fn default() -> Self {
        Self {
            points: Vec::new(),
            extremes: Extremes::default(),
            gaps: Vec::new(),
            generation: GENERATIONS.fetch_add(1, Ordering::Relaxed),
        }
    }
}

impl Deref for Curve {
    type Target = [Point];

    fn deref(&self) -> &[Point] {
        &self.points
    }
}

impl Curve {
    /// Add a point; its step, tokens and seconds are not less than those of the one before.
    pub fn push(&mut self, point: Point) {
        if !point.value.is_finite() {
            self.gaps.push(self.points.len());
        }
        self.points.push(point);
        self.extremes.push(|index| self.points[index].value);
    }

    /// Keep the first `length` points.
    pub fn truncate(&mut self, length: usize) {
        if length >= self.points.len() {
            return;
        }
        self.points.truncate(length);
        self.gaps
            .truncate(self.gaps.partition_point(|&gap| gap < length));
        self.extremes
            .truncate(length, |index| self.points[index].value);
        self.generation = GENERATIONS.fetch_add(1, Ordering::Relaxed);
    }

    /// A number that changes whenever points are taken away: while it is the same, the curve has only grown.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Positions of the lowest and the highest finite value in a range of positions.
    #[must_use]
    pub fn extremes(&self, range: Range<usize>) -> Option<(usize, usize)> {
        self.extremes
            .within(range, |index| self.points[index].value)
    }

    /// Whether a value in this range of positions is not finite.
    #[must_use]
    pub fn has_gap(&self, range: Range<usize>) -> bool {
        let next = self.gaps.partition_point(|&gap| gap < range.start);
        self.gaps.get(next).is_some_and(|&gap| gap < range.end)
    }

    /// Positions of the points that lie in a part of an axis, both ends included.
    #[must_use]
    pub fn range(&self, axis: Axis, (from, to): (f64, f64)) -> Range<usize> {
        let start = self.partition_point(|point| point.at(axis) < from);
        let end = self.partition_point(|point| point.at(axis) <= to);
        start..end.max(start)
    }

    /// The point that is nearest to a place on an axis.
    #[must_use]
    pub fn nearest(&self, axis: Axis, x: f64) -> Option<&Point> {
        let after = self.partition_point(|point| point.at(axis) < x);
        let distance = |index: &usize| (self[*index].at(axis) - x).abs();
        let candidates = [after.checked_sub(1), (after < self.len()).then_some(after)];
        let nearest = candidates.into_iter().flatten();
        nearest
            .min_by(|a, b| distance(a).total_cmp(&distance(b)))
            .map(|index| &self[index])
    }

    /// The last point whose value is finite.
    #[must_use]
    pub fn latest(&self) -> Option<&Point> {
        // Gaps at the end are few: a run stops at the first one.
        self.iter().rev().find(|point| point.value.is_finite())
    }

    /// Where on `axis` a step lies, between the points around it; `None` without points.
    #[must_use]
    pub fn place(&self, axis: Axis, step: f64) -> Option<f64> {
        let after = self.partition_point(|point| point.step < step);
        let (Some(first), Some(last)) = (self.first(), self.last()) else {
            return None;
        };
        if axis == Axis::Step {
            return Some(step);
        }
        if after == 0 || after == self.len() {
            return Some(if after == 0 { first } else { last }.at(axis));
        }
        let (a, b) = (&self[after - 1], &self[after]);
        let share = (step - a.step) / (b.step - a.step);
        Some(a.at(axis) + share * (b.at(axis) - a.at(axis)))
    }

    /// The step at a place on `axis`: that of the nearest point.
    #[must_use]
    pub fn step_at(&self, axis: Axis, x: f64) -> Option<f64> {
        match axis {
            Axis::Step => Some(x),
            _ => self.nearest(axis, x).map(|point| point.step),
        }
    }
}
