//! Smoothed curves.

use super::curve::{Curve, Point};

/// An exponential moving average of a curve, which grows with it.
///
/// A point that lies `d` updates back weighs `exp(-d / window)`; weights are normalised, so that the beginning is not drawn
/// towards zero (the bias correction of Adam, Kingma & Ba 2015). Gaps stay gaps and do not enter.
#[derive(Clone, Debug, Default)]
pub(super) struct Smoothed {
    curve: Curve,
    source: Option<(u64, f64)>,
    sum: f64,
    weight: f64,
}

impl Smoothed {
    /// The average as it was made last.
    #[must_use]
    pub(super) fn curve(&self) -> &Curve {
        &self.curve
    }

    /// The average of `curve` over about `window` updates. Costs as many steps as there are new points.
    pub(super) fn of(&mut self, curve: &Curve, window: f64) -> &Curve {
        let source = Some((curve.generation(), window));
        if self.source != source {
            *self = Self {
                source,
                ..Self::default()
            };
        }
        for index in self.curve.len()..curve.len() {
            let point = curve[index];
            let before = index.checked_sub(1).map_or(point.step, |at| curve[at].step);
            let decay = (-(point.step - before) / window).exp();
            (self.sum, self.weight) = (self.sum * decay, self.weight * decay);
            if point.value.is_finite() {
                (self.sum, self.weight) = (self.sum + point.value, self.weight + 1.0);
            }
            let value = if point.value.is_finite() {
                self.sum / self.weight
            } else {
                f64::NAN
            };
            self.curve.push(Point { value, ..point });
        }
        &self.curve
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(values: &[f64]) -> Curve {
        let mut curve = Curve::default();
        for (step, &value) in values.iter().enumerate() {
            let step = step as f64;
            curve.push(Point {
                step,
                tokens: step,
                seconds: step,
                value,
            });
        }
        curve
    }

    #[test]
    fn it_is_the_weighted_mean_of_what_came() {
        let values = [4.0, 1.0, f64::NAN, 3.0, 2.0];
        let source = curve(&values);
        let mut smoothed = Smoothed::default();
        let result = smoothed.of(&source, 2.5);
        for (end, point) in result.iter().enumerate() {
            let (mut sum, mut weight) = (0.0, 0.0);
            for (at, value) in values[..=end]
                .iter()
                .enumerate()
                .filter(|(_, v)| v.is_finite())
            {
                let w = (-((end - at) as f64) / 2.5).exp();
                (sum, weight) = (sum + w * value, weight + w);
            }
            if values[end].is_nan() {
                assert!(point.value.is_nan());
            } else {
                assert!((point.value - sum / weight).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn it_grows_with_its_source_and_follows_a_rewind() {
        let mut source = curve(&[5.0, 4.0, 3.0, 2.0]);
        let mut grown = Smoothed::default();
        grown.of(&source, 3.0);
        source.push(Point {
            step: 4.0,
            tokens: 4.0,
            seconds: 4.0,
            value: 9.0,
        });
        let at_once = |source: &Curve, window| Smoothed::default().of(source, window).to_vec();
        assert_eq!(grown.of(&source, 3.0).to_vec(), at_once(&source, 3.0));
        source.truncate(2);
        source.push(Point {
            step: 2.0,
            tokens: 2.0,
            seconds: 2.0,
            value: 1.0,
        });
        assert_eq!(grown.of(&source, 3.0).to_vec(), at_once(&source, 3.0));
        assert_eq!(grown.of(&source, 30.0).to_vec(), at_once(&source, 30.0));
    }
}
