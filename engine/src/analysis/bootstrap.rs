//! Percentile intervals by resampling (Efron, 1979): how far a figure would move with other sequences of the same kind.
//!
//! What is drawn is the unit that is independent of the others: a sequence, or a minibatch of whole sequences, never a token.
//! All figures of an analysis use the same draws, so differences of figures can be formed draw by draw.

use serde::Serialize;

use crate::random::{below, stream};

/// Bounds of the interval: 95 % of the draws lie between.
const TAILS: [f64; 2] = [0.025, 0.975];

/// A figure with its interval. Written as `null` where it does not exist (0 / 0; an interval over one unit).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Over all units.
    pub value: f64,
    /// 2.5 % of the draws lie below.
    pub low: f64,
    /// 2.5 % of the draws lie above.
    pub high: f64,
}

/// Draws with replacement from a number of units.
#[derive(Clone, Debug)]
pub struct Bootstrap {
    units: usize,
    /// How often each unit was drawn, draw by draw.
    draws: Vec<Vec<f64>>,
}

impl Bootstrap {
    /// `draws` draws from `units` units; the same seed gives the same draws.
    #[must_use]
    pub fn new(units: usize, draws: usize, seed: u64) -> Self {
        let draw = |number: usize| {
            let mut rng = stream(seed, &format!("bootstrap/{number}"));
            let mut counts = vec![0.0; units];
            for _ in 0..units {
                counts[below(&mut rng, units)] += 1.0;
            }
            counts
        };
        Self {
            units,
            draws: (0..draws).map(draw).collect(),
        }
    }

    /// Units that are drawn from.
    #[must_use]
    pub fn units(&self) -> usize {
        self.units
    }

    /// Number of draws.
    #[must_use]
    pub fn draws(&self) -> usize {
        self.draws.len()
    }

    /// The same with the first `draws` draws only, for figures that take long.
    #[must_use]
    pub fn fewer(&self, draws: usize) -> Self {
        Self {
            units: self.units,
            draws: self.draws.iter().take(draws).cloned().collect(),
        }
    }

    /// A figure that `statistic` computes, given how often each unit counts. Draws without a finite value are left out.
    #[must_use]
    pub fn estimate(&self, statistic: impl Fn(&[f64]) -> f64) -> Estimate {
        self.collect(statistic).estimate(|&value| value)
    }

    /// What `statistic` computes of all units and of every draw, for several figures of one computation.
    #[must_use]
    pub fn collect<T>(&self, statistic: impl Fn(&[f64]) -> T) -> Drawn<T> {
        let value = statistic(&vec![1.0; self.units]);
        let draws = match self.units {
            0 | 1 => Vec::new(),
            _ => self.draws.iter().map(|counts| statistic(counts)).collect(),
        };
        Drawn { value, draws }
    }

    /// The mean of one number per unit.
    #[must_use]
    pub fn mean(&self, values: &[f64]) -> Estimate {
        self.estimate(|counts| weighted_mean(values, counts))
    }
}

/// What was computed of all units, and of every draw.
#[derive(Clone, Debug)]
pub struct Drawn<T> {
    value: T,
    draws: Vec<T>,
}

impl<T> Drawn<T> {
    /// One figure of it.
    #[must_use]
    pub fn estimate(&self, figure: impl Fn(&T) -> f64) -> Estimate {
        let mut values: Vec<f64> = self.draws.iter().map(&figure).collect();
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        let [low, high] = TAILS.map(|share| quantile(&values, share));
        Estimate {
            value: figure(&self.value),
            low,
            high,
        }
    }
}

/// Mean of `values`, each counted so often; 0 / 0 is not a number.
#[must_use]
pub fn weighted_mean(values: &[f64], counts: &[f64]) -> f64 {
    let pairs = values.iter().zip(counts);
    let (sum, count) = pairs.fold((0.0, 0.0), |(sum, count), (value, weight)| {
        (sum + value * weight, count + weight)
    });
    sum / count
}

/// Quantile of ascending values, interpolated; not a number without values.
fn quantile(values: &[f64], share: f64) -> f64 {
    let Some(last) = values.len().checked_sub(1) else {
        return f64::NAN;
    };
    let position = share * last as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(last);
    values[below] + (position - below as f64) * (values[above] - values[below])
}
