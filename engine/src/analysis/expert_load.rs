//! How a batch used the experts of a layer, reduced to what a person looks at.

use serde::Serialize;

/// The use of one layer's experts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExpertLoad {
    /// The layer, from 0.
    pub layer: u32,
    /// Share of all choices that each expert got; they sum to one.
    pub load: Vec<f64>,
    /// `max c / mean c - 1` (MaxVio, Wang et al. 2024): 0 if all experts got the same.
    pub max_violation: f64,
    /// Entropy of the mean probabilities of the router, in nats; `ln experts` if they are even.
    pub entropy: f64,
}

/// Reduce the statistics `[2, experts]` of a router: how many tokens chose each expert, and its mean probability.
#[must_use]
pub fn expert_load(layer: u32, statistics: &[f64]) -> ExpertLoad {
    let (counts, probabilities) = statistics.split_at(statistics.len() / 2);
    let total = counts.iter().sum::<f64>().max(1.0);
    let load: Vec<f64> = counts.iter().map(|count| count / total).collect();
    let largest = load.iter().copied().fold(0.0, f64::max);
    let surprise = |&p: &f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
    ExpertLoad {
        layer,
        max_violation: largest * load.len() as f64 - 1.0,
        entropy: probabilities.iter().map(surprise).sum(),
        load,
    }
}
