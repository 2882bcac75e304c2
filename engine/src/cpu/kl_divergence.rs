//! Twin of `shaders/kl_divergence.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::kl_divergence::Params;

pub(super) fn forward<T: Real>(params_: &dyn Any, [p, q, divergence, ..]: CpuArgs<'_, T>) {
    let shape: &Params = params(params_);
    let vocab = shape.vocab as usize;
    let rows = p
        .read()
        .chunks_exact(vocab)
        .zip(q.read().chunks_exact(vocab));
    for (out, (p, q)) in divergence.write().iter_mut().zip(rows) {
        let largest = |row: &[T]| row.iter().copied().fold(T::of(-1e30), T::max);
        let (largest_p, largest_q) = (largest(p), largest(q));
        let sum = |row: &[T], largest: T| -> T { row.iter().map(|&z| (z - largest).exp()).sum() };
        let (sum_p, sum_q) = (sum(p, largest_p), sum(q, largest_q));
        let shift = sum_p.ln() - sum_q.ln();
        let term = |(&p, &q): (&T, &T)| {
            let (a, b) = (p - largest_p, q - largest_q);
            a.exp() / sum_p * (a - b - shift)
        };
        *out = p.iter().zip(q).map(term).sum();
    }
}
