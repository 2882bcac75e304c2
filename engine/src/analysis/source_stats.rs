//! How different the sources are that a token can choose from (section 8 of the routing specification).
//!
//! Neighbours with a cosine near one leave little to choose. The effective rank of the sources, stacked as the rows of a
//! matrix and not centred, says how many there really are.

use super::rank::{effective_count, singular_values};

/// Cosine of two vectors; not a number if one of them is zero.
#[must_use]
pub fn cosine(a: &[f64], b: &[f64]) -> f64 {
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// Effective rank (of the singular values) of some vectors.
#[must_use]
pub fn stacked_rank(vectors: &[&[f64]]) -> f64 {
    let n = vectors.len();
    let mut gram = vec![0.0; n * n];
    for i in 0..n {
        for j in i..n {
            let product = dot(vectors[i], vectors[j]);
            (gram[i * n + j], gram[j * n + i]) = (product, product);
        }
    }
    effective_count(&singular_values(&gram, n))
}

/// `|a - b|` in units of the mean of their norms: 0 for equal streams, 2 for opposite ones.
#[must_use]
pub fn relative_difference(a: &[f64], b: &[f64]) -> f64 {
    let difference: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    2.0 * difference.sqrt() / (dot(a, a).sqrt() + dot(b, b).sqrt())
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
