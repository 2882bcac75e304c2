//! Linear centred kernel alignment: how alike two representations of the same tokens are, up to rotation, shift and scale.
//!
//! ```text
//! CKA(X, Y) = |X^T Y|^2 / (|X^T X| |Y^T Y|),   columns centred, Frobenius norms     (Kornblith et al., 2019)
//! ```
//!
//! With few tokens this form is far too large. The unbiased form (Nguyen et al., 2021) takes, for each minibatch of `b`
//! tokens, `K = X X^T` without its diagonal, and
//!
//! ```text
//! U_ij   = K_ij - (r_i + r_j) / (b - 2) + s / ((b - 1)(b - 2)),   U_ii = 0,   r = K 1,   s = 1^T K 1
//! HSIC1  = <U_X, U_Y> / (b (b - 3))
//! CKA_mb = sum HSIC1(X, Y) / sqrt(sum HSIC1(X, X) sum HSIC1(Y, Y)),   sums over minibatches
//! ```
//!
//! It can be a little below 0. With each `U` as one row of `V`, all pairs are the product `V V^T`, which the device computes
//! ([`Pairs`]). Rows are brought to length one first, and features are centred, so single precision is enough: both change
//! nothing but rounding.

use crate::error::{Error, Result};
use crate::executor::{Data, Values};
use crate::ops::matmul::linear;
use crate::runtime::{Loaded, Runtime};
use crate::tape::Tape;

/// The least tokens of a minibatch.
pub const LEAST_TOKENS: usize = 4;

/// The biased form for features `x` and `y` of `rows` tokens, each row-major.
#[must_use]
pub fn linear_cka(x: &[f64], y: &[f64], rows: usize) -> f64 {
    let (x, y) = (centred(x, rows), centred(y, rows));
    let squares = |a: &[f64], b: &[f64]| -> f64 {
        let (p, q) = (a.len() / rows, b.len() / rows);
        let mut product = vec![0.0; p * q];
        for (a, b) in a.chunks_exact(p).zip(b.chunks_exact(q)) {
            for (row, a) in product.chunks_exact_mut(q).zip(a) {
                row.iter_mut().zip(b).for_each(|(sum, b)| *sum += a * b);
            }
        }
        product.iter().map(|v| v * v).sum()
    };
    squares(&x, &y) / (squares(&x, &x) * squares(&y, &y)).sqrt()
}

/// Features whose columns have the mean 0.
#[must_use]
pub fn centred(x: &[f64], rows: usize) -> Vec<f64> {
    let width = x.len() / rows.max(1);
    let mut mean = vec![0.0; width];
    for row in x.chunks_exact(width.max(1)) {
        mean.iter_mut()
            .zip(row)
            .for_each(|(mean, v)| *mean += v / rows as f64);
    }
    let row =
        |row: &[f64]| -> Vec<f64> { row.iter().zip(&mean).map(|(v, mean)| v - mean).collect() };
    x.chunks_exact(width.max(1)).flat_map(row).collect()
}

/// `X X^T`.
#[must_use]
pub fn gram(x: &[f64], rows: usize) -> Vec<f64> {
    let width = x.len() / rows.max(1);
    let row = |i: usize| &x[i * width..(i + 1) * width];
    let entry = |at: usize| -> f64 {
        let (a, b) = (row(at / rows), row(at % rows));
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    };
    (0..rows * rows).map(entry).collect()
}

/// `U` of a Gram matrix of `b` tokens, in place; `b` is at least [`LEAST_TOKENS`].
pub fn u_centre(gram: &mut [f64], b: usize) {
    (0..b).for_each(|i| gram[i * b + i] = 0.0);
    let sums: Vec<f64> = gram.chunks_exact(b).map(|row| row.iter().sum()).collect();
    let (one, two) = (b as f64 - 1.0, b as f64 - 2.0);
    let all = sums.iter().sum::<f64>() / (one * two);
    for i in 0..b {
        for j in 0..b {
            gram[i * b + j] = match i == j {
                true => 0.0,
                false => gram[i * b + j] - (sums[i] + sums[j]) / two + all,
            };
        }
    }
}

/// `HSIC1` of two centred Gram matrices of `b` tokens.
#[must_use]
pub fn hsic1(x: &[f64], y: &[f64], b: usize) -> f64 {
    let product: f64 = x.iter().zip(y).map(|(x, y)| x * y).sum();
    product / scale(b)
}

/// `b (b - 3)`.
fn scale(b: usize) -> f64 {
    b as f64 * (b as f64 - 3.0)
}

/// `CKA_mb` of features `i` and `j`, from the matrices `[n, n]` of [`Pairs::hsic`] of all minibatches, each counted so often.
#[must_use]
pub fn minibatch_cka(batches: &[Vec<f64>], counts: &[f64], n: usize, i: usize, j: usize) -> f64 {
    let sum = |i: usize, j: usize| -> f64 {
        let terms = batches.iter().zip(counts);
        terms.map(|(batch, count)| batch[i * n + j] * count).sum()
    };
    sum(i, j) / (sum(i, i) * sum(j, j)).sqrt()
}

/// Computes `HSIC1` of all pairs of some features on a device: two plans, one for the Gram matrices and one for `V V^T`.
#[derive(Debug)]
pub struct Pairs {
    grams: Loaded,
    product: Loaded,
    count: usize,
    tokens: usize,
}

/// Name of features `number` in the first plan; and of their Gram matrix.
fn names(number: usize) -> [String; 2] {
    [format!("features.{number}"), format!("gram.{number}")]
}

impl Pairs {
    /// For `count` features of `tokens` tokens, `[tokens, width]` each.
    ///
    /// # Errors
    /// If there are fewer than [`LEAST_TOKENS`] tokens, or the device cannot hold it.
    pub fn new(runtime: &mut Runtime, count: usize, tokens: usize, width: usize) -> Result<Self> {
        let refuse = |message: String| Error::Op { op: "cka", message };
        if tokens < LEAST_TOKENS || count == 0 {
            let message = format!(
                "{count} features of {tokens} tokens; at least 1 of {LEAST_TOKENS} are needed"
            );
            return Err(refuse(message));
        }
        let too_large = |_| refuse(format!("{count} features of {tokens} tokens are too many"));
        let number = |value: usize| u32::try_from(value).map_err(too_large);
        let (parameters, limits) = (runtime.parameters().clone(), runtime.limits());
        let mut tape = Tape::new(parameters.clone());
        for feature in 0..count {
            let [input, output] = names(feature);
            let x = tape.input(&input, [number(tokens)?, number(width)?]);
            let gram = linear(&mut tape, x, x)?;
            tape.output(&output, gram);
        }
        let grams = runtime.load(&tape.finish(&limits)?)?;
        let mut tape = Tape::new(parameters);
        let rows = tape.input("v", [number(count)?, number(tokens * tokens)?]);
        let product = linear(&mut tape, rows, rows)?;
        tape.output("product", product);
        let product = runtime.load(&tape.finish(&limits)?)?;
        Ok(Self {
            grams,
            product,
            count,
            tokens,
        })
    }

    /// `HSIC1` of every pair, `[count, count]`.
    ///
    /// # Errors
    /// If there are more or fewer features, they have another shape, or the device fails.
    pub async fn hsic(&self, runtime: &mut Runtime, features: &[Vec<f64>]) -> Result<Vec<f64>> {
        let (n, b) = (self.count, self.tokens);
        if features.len() != n {
            let message = format!("{} features, expected {n}", features.len());
            return Err(Error::Op { op: "cka", message });
        }
        for (feature, x) in features.iter().enumerate() {
            let x = centred(x, b);
            runtime.write_input(&self.grams, &names(feature)[0], Data::F64(&x))?;
        }
        runtime.submit(false, &[&self.grams])?;
        let wanted: Vec<String> = (0..n).map(|feature| names(feature)[1].clone()).collect();
        let grams = runtime.read(&self.grams, &wanted).await?;
        let mut rows = Vec::with_capacity(n * b * b);
        let mut norms = Vec::with_capacity(n);
        for gram in grams.iter().map(Values::to_f64) {
            let mut gram = gram;
            u_centre(&mut gram, b);
            let norm = gram.iter().map(|v| v * v).sum::<f64>().sqrt();
            let unit = if norm > 0.0 { norm } else { 1.0 };
            rows.extend(gram.iter().map(|v| v / unit));
            norms.push(norm);
        }
        runtime.write_input(&self.product, "v", Data::F64(&rows))?;
        runtime.submit(false, &[&self.product])?;
        let read = runtime.read(&self.product, &["product".to_owned()]).await?;
        let cosines = read.first().map(Values::to_f64).unwrap_or_default();
        let entry = |(at, cosine): (usize, f64)| {
            let (i, j) = (at / n, at % n);
            // What is known exactly needs no rounding.
            let cosine = if i == j { 1.0 } else { cosine };
            cosine * norms[i] * norms[j] / scale(b)
        };
        Ok(cosines.into_iter().enumerate().map(entry).collect())
    }
}
