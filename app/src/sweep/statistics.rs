//! Means over seeds, and paired differences with an interval.
//!
//! Two variants with one seed share initial values and batches, so their losses move together; the difference of the two
//! is formed seed by seed, and the interval is that of its mean:
//!
//! `mean(d) +- t(0.975, n - 1) sd(d) / sqrt(n)`, `d_i` the difference with seed `i`: Student's t, two-sided, 95 %.
//!
//! It takes differences to be normal. With two or three seeds it is wide, as it should be. A bootstrap of so few numbers
//! would be too narrow.

use serde::Serialize;

/// A difference over seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Seeds that both variants have.
    pub seeds: usize,
    /// Over them.
    pub mean: f64,
    /// Lower end of the interval; absent with one seed.
    pub low: Option<f64>,
    /// Upper end of the interval; absent with one seed.
    pub high: Option<f64>,
}

/// What a difference says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// One seed: there is no noise to compare it with.
    TooFewSeeds,
    /// The interval holds 0.
    TooNoisy,
    /// All of the interval is below 0.
    Lower,
    /// All of the interval is above 0.
    Higher,
}

impl Verdict {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::TooFewSeeds => "too few seeds",
            Self::TooNoisy => "too noisy to say",
            Self::Lower => "lower",
            Self::Higher => "higher",
        }
    }
}

impl Difference {
    /// Of paired numbers; `None` without any.
    #[must_use]
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let differences: Vec<f64> = pairs.iter().map(|(own, first)| own - first).collect();
        let (mean, deviation) = (mean(&differences)?, deviation(&differences));
        let seeds = differences.len();
        let half =
            deviation.map(|deviation| t_quantile(seeds - 1) * deviation / (seeds as f64).sqrt());
        Some(Self {
            seeds,
            mean,
            low: half.map(|half| mean - half),
            high: half.map(|half| mean + half),
        })
    }

    /// What it says.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match (self.low, self.high) {
            (Some(_), Some(high)) if high < 0.0 => Verdict::Lower,
            (Some(low), Some(_)) if low > 0.0 => Verdict::Higher,
            (Some(_), Some(_)) => Verdict::TooNoisy,
            _ => Verdict::TooFewSeeds,
        }
    }
}

/// The mean; `None` of nothing.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The standard deviation of a sample, over `n - 1`; `None` below two values.
#[must_use]
pub fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

/// The 97.5 % quantile of Student's t.
#[must_use]
pub fn t_quantile(degrees: usize) -> f64 {
    // The share between -t and t rises with t: halve the range that holds the one with 95 %.
    let (mut low, mut high) = (0.0, 20.0);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if share_within(middle, degrees) < 0.95 {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// The share of Student's t between `-t` and `t`: the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4.
fn share_within(t: f64, degrees: usize) -> f64 {
    let angle = (t / (degrees as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let odd = degrees % 2;
    // Odd: cos + 2/3 cos^3 + ..; even: 1 + 1/2 cos^2 + ..
    let mut term = if odd == 1 { cosine } else { 1.0 };
    let mut sum = 0.0;
    for step in 0..degrees / 2 {
        sum += term;
        let place = (2 * step + 1 + odd) as f64;
        term *= cosine * cosine * place / (place + 1.0);
    }
    if odd == 1 {
        std::f64::consts::FRAC_2_PI * (angle + sine * sum)
    } else {
        sine * sum
    }
}

#[cfg(test)]
mod tests {
    use super::{Difference, Verdict, t_quantile};

    #[test]
    fn quantiles_are_those_of_the_tables() {
        let table = [
            (1, 12.7062),
            (2, 4.3027),
            (3, 3.1824),
            (4, 2.7764),
            (5, 2.5706),
            (9, 2.2622),
            (10, 2.2281),
            (30, 2.0423),
            (120, 1.9799),
        ];
        for (degrees, want) in table {
            let got = t_quantile(degrees);
            assert!((got - want).abs() < 6e-5, "{degrees}: {got}");
        }
    }

    #[test]
    fn differences_are_paired() {
        // The seeds differ by far more than the variants.
        let pairs = [(1.1, 1.0), (5.2, 5.0), (9.3, 9.0)];
        let found = Difference::of(&pairs).expect("three pairs");
        assert!((found.mean - 0.2).abs() < 1e-12);
        // sd 0.1, 4.30265 * 0.1 / sqrt 3
        let (low, high) = (found.low.expect("low"), found.high.expect("high"));
        assert!((low + 0.048_414).abs() < 1e-5 && (high - 0.448_414).abs() < 1e-5);
        assert_eq!(found.verdict(), Verdict::TooNoisy);
        let clear = Difference::of(&[(1.0, 1.1), (5.0, 5.1), (9.0, 9.11)]).expect("three pairs");
        assert_eq!(clear.verdict(), Verdict::Lower);
        let one = Difference::of(&[(1.0, 2.0)]).expect("a pair");
        assert_eq!((one.low, one.verdict()), (None, Verdict::TooFewSeeds));
        assert_eq!(Difference::of(&[]), None);
    }
}
