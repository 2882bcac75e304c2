//! Fewer points than pixels, with nothing lost that could be seen.
//!
//! Of each pixel column a curve needs its first, lowest, highest and last point: lines through them cover the same pixels as
//! lines through all points (Jugel et al., "M4: A Visualization-Oriented Time Series Data Aggregation", VLDB 2014). Lowest and
//! highest come from a tree that grows with the curve, so that a picture costs as many steps as it has columns, times a
//! logarithm, however many points there are.

use std::ops::Range;

use super::curve::Curve;
use super::view::Axis;

/// Entries of a block, on every level of the tree.
const FAN: usize = 16;

/// No finite value in the block.
const NONE: u32 = u32::MAX;

/// Where the lowest and the highest value of every block of `16`, `256`, .. values is.
#[derive(Clone, Debug, Default)]
pub(super) struct Extremes {
    levels: Vec<Vec<(u32, u32)>>,
    length: usize,
}

impl Extremes {
    /// Add the value at position `self.length`; `value` gives any value that was added before, too.
    pub(super) fn push(&mut self, value: impl Fn(usize) -> f64) {
        let index = self.length;
        self.length += 1;
        let own = if value(index).is_finite() {
            (index as u32, index as u32)
        } else {
            (NONE, NONE)
        };
        let (mut block, mut level) = (index / FAN, 0);
        loop {
            if level == self.levels.len() {
                // The first block of a new level sums up all that is below it.
                let below = level.checked_sub(1).map(|below| &self.levels[below]);
                let sum = match below {
                    Some(below) => below.iter().fold((NONE, NONE), |a, &b| join(a, b, &value)),
                    None => own,
                };
                self.levels.push(vec![sum]);
            } else if block == self.levels[level].len() {
                self.levels[level].push(own);
            } else {
                let entry = &mut self.levels[level][block];
                *entry = join(*entry, own, &value);
            }
            if self.levels[level].len() == 1 {
                break;
            }
            block /= FAN;
            level += 1;
        }
    }

    /// Forget all values from `length` on.
    pub(super) fn truncate(&mut self, length: usize, value: impl Fn(usize) -> f64) {
        if length >= self.length {
            return;
        }
        self.length = length;
        let mut size = FAN;
        for level in 0..self.levels.len() {
            let (below, rest) = self.levels.split_at_mut(level);
            let blocks = &mut rest[0];
            blocks.truncate(length.div_ceil(size));
            // The last block has lost some of its entries.
            if let Some(last) = blocks.len().checked_sub(1) {
                let single = |index: usize| match value(index).is_finite() {
                    true => (index as u32, index as u32),
                    false => (NONE, NONE),
                };
                blocks[last] = match below.last() {
                    Some(below) => below[last * FAN..]
                        .iter()
                        .fold((NONE, NONE), |a, &b| join(a, b, &value)),
                    None => {
                        (last * FAN..length).fold((NONE, NONE), |a, i| join(a, single(i), &value))
                    }
                };
            }
            size *= FAN;
        }
        while self.levels.len() > 1 && self.levels[self.levels.len() - 2].len() <= 1 {
            self.levels.pop();
        }
        if length == 0 {
            self.levels.clear();
        }
    }

    /// Positions of the lowest and the highest finite value in a range.
    pub(super) fn within(
        &self,
        range: Range<usize>,
        value: impl Fn(usize) -> f64,
    ) -> Option<(usize, usize)> {
        let (mut at, end) = (range.start, range.end.min(self.length));
        let mut best = (NONE, NONE);
        while at < end {
            // The largest block that begins here and does not pass the end.
            let (mut size, mut found) = (1, None);
            for level in &self.levels {
                let next = size * FAN;
                if !at.is_multiple_of(next) || at + next > end {
                    break;
                }
                (size, found) = (next, Some(level));
            }
            let entry = match found {
                Some(level) => level[at / size],
                None if value(at).is_finite() => (at as u32, at as u32),
                None => (NONE, NONE),
            };
            best = join(best, entry, &value);
            at += size;
        }
        (best.0 != NONE).then_some((best.0 as usize, best.1 as usize))
    }
}

/// The lower of the lows and the higher of the highs; of equal ones the earlier.
fn join(a: (u32, u32), b: (u32, u32), value: &impl Fn(usize) -> f64) -> (u32, u32) {
    if a.0 == NONE || b.0 == NONE {
        return if a.0 == NONE { b } else { a };
    }
    let low = if value(b.0 as usize) < value(a.0 as usize) {
        b.0
    } else {
        a.0
    };
    let high = if value(b.1 as usize) > value(a.1 as usize) {
        b.1
    } else {
        a.1
    };
    (low, high)
}

/// The part of a horizontal axis that is drawn, and on how many pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    /// What is counted.
    pub(super) axis: Axis,
    /// From, to; in units of the axis.
    pub(super) range: (f64, f64),
    /// Equal distances are equal ratios.
    pub(super) log: bool,
    /// Pixel columns.
    pub(super) columns: usize,
}

impl Span {
    /// Where column `column` begins.
    fn edge(&self, column: usize) -> f64 {
        let share = column as f64 / self.columns.max(1) as f64;
        let (from, to) = self.range;
        if self.log {
            from * (to / from).powf(share)
        } else {
            from + (to - from) * share
        }
    }
}

/// Lines that look like the curve: pairs of position and value, a new line after each gap. At most four points a column and
/// one more at each end, so that lines leave the picture where they should.
#[must_use]
pub(super) fn decimate(curve: &Curve, span: &Span) -> Vec<Vec<[f64; 2]>> {
    let x = |index: usize| curve[index].at(span.axis);
    let visible = curve.range(span.axis, span.range);
    let (start, end) = (
        visible.start.saturating_sub(1),
        (visible.end + 1).min(curve.len()),
    );
    let mut kept = Vec::with_capacity(4 * span.columns + 8);
    if end - start <= 4 * span.columns {
        kept.extend((start..end).filter(|&index| curve[index].value.is_finite()));
    } else {
        let (mut at, mut column) = (start, 0);
        while at < end {
            let stop = if column >= span.columns {
                end
            } else {
                column += 1;
                let edge = span.edge(column);
                at + curve[at..end].partition_point(|point| point.at(span.axis) < edge)
            };
            if let Some((low, high)) = curve.extremes(at..stop) {
                let finite = |index: &usize| curve[*index].value.is_finite();
                let mut four = [at, low, high, stop - 1];
                four.sort_unstable();
                kept.extend(four.into_iter().filter(finite));
            }
            at = stop;
        }
        kept.dedup();
    }
    let mut lines: Vec<Vec<[f64; 2]>> = Vec::new();
    let mut before = None;
    for index in kept {
        let broken = before.is_none_or(|before| curve.has_gap(before..index));
        if broken {
            lines.push(Vec::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push([x(index), curve[index].value]);
        }
        before = Some(index);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::curve::Point;
    use super::*;

    /// A reproducible noise, with a gap now and then.
    fn noise(state: &mut u64) -> f64 {
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let bits = *state >> 33;
        if bits.is_multiple_of(97) {
            f64::NAN
        } else {
            bits as f64 / f64::from(1 << 31)
        }
    }

    fn point(step: usize, value: f64) -> Point {
        let step = step as f64;
        Point {
            step,
            tokens: 768.0 * step,
            seconds: 0.1 * step,
            value,
        }
    }

    fn noisy(length: usize, state: &mut u64) -> Curve {
        let mut curve = Curve::default();
        (0..length).for_each(|step| curve.push(point(step, noise(state))));
        curve
    }

    fn plain_extremes(curve: &Curve, range: Range<usize>) -> Option<(f64, f64)> {
        let finite = curve[range]
            .iter()
            .map(|p| p.value)
            .filter(|v| v.is_finite());
        finite.fold(None, |best, v| {
            let (low, high) = best.unwrap_or((v, v));
            Some((v.min(low), v.max(high)))
        })
    }

    #[test]
    fn the_tree_finds_what_a_plain_search_finds() {
        let mut state = 1;
        for length in [0, 1, 15, 16, 17, 255, 256, 257, 4096, 5000] {
            let mut curve = noisy(length, &mut state);
            for round in 0..40 {
                if round == 20 {
                    // A rewind, and other values after it.
                    curve.truncate(length / 3);
                    (length / 3..length)
                        .for_each(|step| curve.push(point(step, noise(&mut state))));
                }
                let cut = |value: f64| (value.max(0.0) * length as f64) as usize;
                let (a, b) = (cut(noise(&mut state)), cut(noise(&mut state)));
                let range = a.min(b)..a.max(b);
                let found = curve.extremes(range.clone());
                let found = found.map(|(low, high)| (curve[low].value, curve[high].value));
                assert_eq!(
                    found,
                    plain_extremes(&curve, range.clone()),
                    "{length}: {range:?}"
                );
                let gap = curve[range.clone()].iter().any(|p| p.value.is_nan());
                assert_eq!(curve.has_gap(range), gap);
            }
        }
    }

    #[test]
    fn a_tree_that_was_cut_equals_one_that_never_grew() {
        let mut state = 5;
        let long = noisy(5000, &mut state);
        for length in [0, 1, 16, 17, 256, 300, 4095, 4096, 4097] {
            let mut cut = long.clone();
            cut.truncate(length);
            let mut fresh = Curve::default();
            long[..length].iter().for_each(|&p| fresh.push(p));
            for (a, b) in [(0, length), (length / 5, length / 2), (length / 3, length)] {
                assert_eq!(
                    cut.extremes(a..b),
                    fresh.extremes(a..b),
                    "{length}: {a}..{b}"
                );
            }
        }
    }

    #[test]
    fn a_picture_keeps_the_extremes_of_every_column() {
        let mut state = 2;
        let curve = noisy(20_000, &mut state);
        for (range, log) in [
            ((0.0, 20_000.0), false),
            ((333.3, 9000.0), false),
            ((1.0, 2e4), true),
        ] {
            let span = Span {
                axis: Axis::Step,
                range,
                log,
                columns: 50,
            };
            let drawn: Vec<[f64; 2]> = decimate(&curve, &span).concat();
            for column in 0..span.columns {
                let (from, to) = (span.edge(column), span.edge(column + 1));
                let inside = curve.range(Axis::Step, (from, to.next_down()));
                let values = drawn
                    .iter()
                    .filter(|p| p[0] >= from && p[0] < to)
                    .map(|p| p[1]);
                let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
                    (l.min(v), h.max(v))
                });
                if let Some(expected) = plain_extremes(&curve, inside) {
                    assert_eq!((low, high), expected, "column {column} of {span:?}");
                }
            }
        }
    }

    #[test]
    fn the_number_of_points_depends_on_pixels() {
        let mut state = 3;
        for length in [100_000, 1_000_000] {
            let curve = noisy(length, &mut state);
            let span = Span {
                axis: Axis::Tokens,
                range: (0.0, 768.0 * length as f64),
                log: false,
                columns: 300,
            };
            let drawn: usize = decimate(&curve, &span).iter().map(Vec::len).sum();
            assert!(drawn <= 4 * 300 + 8, "{drawn}");
            assert!(drawn > 2 * 300, "{drawn}");
        }
    }

    #[test]
    fn gaps_break_the_line_and_lone_points_stay() {
        let mut curve = Curve::default();
        for (step, value) in [1.0, f64::NAN, 2.0, f64::NAN, f64::NAN, 3.0, 4.0]
            .into_iter()
            .enumerate()
        {
            curve.push(point(step, value));
        }
        let span = Span {
            axis: Axis::Step,
            range: (0.0, 6.0),
            log: false,
            columns: 10,
        };
        let lines = decimate(&curve, &span);
        assert_eq!(
            lines,
            vec![
                vec![[0.0, 1.0]],
                vec![[2.0, 2.0]],
                vec![[5.0, 3.0], [6.0, 4.0]]
            ]
        );
        // Many points, one gap in the middle of them.
        let mut curve = Curve::default();
        (0..10_000).for_each(|step| {
            curve.push(point(
                step,
                if (5000..6000).contains(&step) {
                    f64::NAN
                } else {
                    1.0
                },
            ))
        });
        let span = Span {
            axis: Axis::Step,
            range: (0.0, 10_000.0),
            log: false,
            columns: 100,
        };
        let lines = decimate(&curve, &span);
        assert_eq!(lines.len(), 2);
        assert_eq!(
            (lines[0].last(), lines[1].first()),
            (Some(&[4999.0, 1.0]), Some(&[6000.0, 1.0]))
        );
    }

    #[test]
    fn lines_leave_the_picture_at_its_sides() {
        let mut curve = Curve::default();
        (0..5).for_each(|step| curve.push(point(10 * step, step as f64)));
        let span = Span {
            axis: Axis::Step,
            range: (12.0, 18.0),
            log: false,
            columns: 10,
        };
        assert_eq!(
            decimate(&curve, &span),
            vec![vec![[10.0, 1.0], [20.0, 2.0]]]
        );
    }
}
