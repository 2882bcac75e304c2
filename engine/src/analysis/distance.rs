//! How far back a read looks, and how differently two streams look.

/// How many sources lie between the one with the largest weight and the newest: 0 if the newest weighs most. Of equal
/// weights the newest counts. `sources` are ordered from the oldest to the newest.
///
/// The papers show weight maps; this number for their diagonals is ours.
#[must_use]
pub fn top1_distance(weights: &[f64]) -> usize {
    let newest = weights.len().saturating_sub(1);
    let top = (0..weights.len()).fold(newest, |best, i| {
        let better = weights[i] > weights[best] || (weights[i] == weights[best] && i > best);
        if better { i } else { best }
    });
    newest - top
}

/// Jensen-Shannon divergence of two distributions, in nats: 0 if they are equal, `ln 2` if they share nothing.
#[must_use]
pub fn jensen_shannon(a: &[f64], b: &[f64]) -> f64 {
    let half = |p: f64, q: f64| {
        if p > 0.0 {
            p * (2.0 * p / (p + q)).ln() / 2.0
        } else {
            0.0
        }
    };
    let terms = a.iter().zip(b).map(|(&p, &q)| half(p, q) + half(q, p));
    terms.sum()
}
