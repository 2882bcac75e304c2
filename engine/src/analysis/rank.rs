//! How many directions vectors use: rank measures of a matrix, from the eigenvalues of its Gram matrix.
//!
//! With singular values `s` and `l = s^2` (section 7.3 of the notes on residual mechanisms):
//!
//! ```text
//! erank         = exp(-sum p ln p),  p = s / sum s      (Roy & Vetterli, 2007: singular values, not their squares)
//! erank2        = exp(-sum p ln p),  p = l / sum l
//! participation = (sum l)^2 / sum l^2
//! stable        = sum l / max l
//! 1 <= participation <= erank2 <= erank <= rank
//! ```
//!
//! A matrix of zeros has rank 0 in every measure.

use nalgebra::DMatrix;
use serde::Serialize;

/// The four measures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ranks {
    /// Effective rank of the singular values.
    pub erank: f64,
    /// The same of their squares.
    pub erank2: f64,
    /// Participation ratio.
    pub participation: f64,
    /// Stable rank.
    pub stable: f64,
}

/// Singular values of a matrix, from its Gram matrix `[n, n]` (of rows or of columns): descending, `n` of them.
#[must_use]
pub fn singular_values(gram: &[f64], n: usize) -> Vec<f64> {
    let matrix = DMatrix::from_row_slice(n, n, gram);
    let eigenvalues = matrix.symmetric_eigenvalues();
    // Rounding makes small eigenvalues negative.
    let mut values: Vec<f64> = eigenvalues.iter().map(|l| l.max(0.0).sqrt()).collect();
    values.sort_by(|a, b| b.total_cmp(a));
    values
}

/// The measures of these singular values.
#[must_use]
pub fn ranks(singular: &[f64]) -> Ranks {
    let squares: Vec<f64> = singular.iter().map(|s| s * s).collect();
    let sum: f64 = squares.iter().sum();
    let largest = squares.iter().copied().fold(0.0, f64::max);
    if sum == 0.0 {
        return Ranks {
            erank: 0.0,
            erank2: 0.0,
            participation: 0.0,
            stable: 0.0,
        };
    }
    Ranks {
        erank: effective_count(singular),
        erank2: effective_count(&squares),
        participation: sum * sum / squares.iter().map(|l| l * l).sum::<f64>(),
        stable: sum / largest,
    }
}

/// `exp` of the entropy of numbers that are at least 0, brought to the sum 1; 0 if all are 0.
#[must_use]
pub fn effective_count(numbers: &[f64]) -> f64 {
    let sum: f64 = numbers.iter().sum();
    if sum == 0.0 {
        return 0.0;
    }
    let shares = numbers.iter().map(|x| x / sum).filter(|&p| p > 0.0);
    (-shares.map(|p| p * p.ln()).sum::<f64>()).exp()
}

/// Sums over some rows of a matrix: enough for the Gram matrix of its centred columns, and they can be added up.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    /// Rows.
    pub count: f64,
    /// Sum of the rows, `[dim]`.
    pub sum: Vec<f64>,
    /// Sum of their outer products, `[dim, dim]`.
    pub products: Vec<f64>,
}

impl Moments {
    /// Of no rows.
    #[must_use]
    pub fn new(dim: usize) -> Self {
        Self {
            count: 0.0,
            sum: vec![0.0; dim],
            products: vec![0.0; dim * dim],
        }
    }

    /// Of rows of `dim` numbers.
    #[must_use]
    pub fn of(rows: &[f64], dim: usize) -> Self {
        let mut moments = Self::new(dim);
        for row in rows.chunks_exact(dim) {
            moments.count += 1.0;
            for (i, &x) in row.iter().enumerate() {
                moments.sum[i] += x;
                // The matrix is symmetric: the lower half is filled in when it is used.
                let products = &mut moments.products[i * dim + i..(i + 1) * dim];
                products
                    .iter_mut()
                    .zip(&row[i..])
                    .for_each(|(p, y)| *p += x * y);
            }
        }
        moments
    }

    /// Count `other` so often on top.
    pub fn add(&mut self, other: &Self, times: f64) {
        self.count += times * other.count;
        let add = |into: &mut [f64], from: &[f64]| {
            into.iter_mut()
                .zip(from)
                .for_each(|(into, x)| *into += times * x);
        };
        add(&mut self.sum, &other.sum);
        add(&mut self.products, &other.products);
    }

    /// The measures of the matrix whose columns are centred.
    #[must_use]
    pub fn ranks(&self) -> Ranks {
        let dim = self.sum.len();
        let mut gram = vec![0.0; dim * dim];
        for i in 0..dim {
            for j in i..dim {
                let mean = self.sum[i] * self.sum[j] / self.count.max(1.0);
                let value = self.products[i * dim + j] - mean;
                (gram[i * dim + j], gram[j * dim + i]) = (value, value);
            }
        }
        ranks(&singular_values(&gram, dim))
    }
}
