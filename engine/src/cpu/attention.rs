//! Twins of `shaders/attention.wgsl` and of its forms for one head dimension.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::attention::Params;

/// Start of row (b, t, h) of q, or of row (b, s, g) of k, in rows.
impl Params {
    fn query_row(&self, b: usize, t: usize, h: usize) -> usize {
        (b * self.tokens as usize + t) * self.heads as usize + h
    }

    fn key_row(&self, b: usize, s: usize, g: usize) -> usize {
        (b * self.tokens as usize + s) * self.kv_heads as usize + g
    }

    fn group(&self) -> usize {
        (self.heads / self.kv_heads) as usize
    }
}

fn inner<T: Real>(x: &[T], y: &[T]) -> T {
    x.iter().zip(y).map(|(&x, &y)| x * y).sum()
}

pub(super) fn forward<T: Real>(p: &dyn Any, [q, k, v, o, lse, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (q, k, v, o, lse) = (q.read(), k.read(), v.read(), o.write(), lse.write());
    let (dim, scale) = (p.dim as usize, T::of(p.scale));
    for b in 0..p.batch as usize {
        for t in 0..p.tokens as usize {
            for h in 0..p.heads as usize {
                let row = p.query_row(b, t, h);
                let asked = &q[row * dim..][..dim];
                let key = |s| p.key_row(b, s, h / p.group()) * dim;
                let scores: Vec<T> = (0..=t)
                    .map(|s| inner(asked, &k[key(s)..][..dim]) * scale)
                    .collect();
                let top = scores.iter().copied().fold(T::neg_infinity(), T::max);
                let total: T = scores.iter().map(|&score| (score - top).exp()).sum();
                lse[row] = top + total.ln();
                for c in 0..dim {
                    o[row * dim + c] = (0..=t)
                        .map(|s| (scores[s] - top).exp() * v[key(s) + c])
                        .sum::<T>()
                        / total;
                }
            }
        }
    }
}

pub(super) fn backward_delta<T: Real>(p: &dyn Any, [o, d_o, delta, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (o, d_o, delta) = (o.read(), d_o.read(), delta.write());
    let dim = p.dim as usize;
    for (row, delta) in delta.iter_mut().enumerate() {
        *delta = inner(&o[row * dim..][..dim], &d_o[row * dim..][..dim]);
    }
}

/// `p` and `ds` of the pair of rows `(b, t, h)` and `(b, s, g)`.
#[derive(Clone, Copy)]
struct Pairs<'a, T> {
    q: &'a [T],
    k: &'a [T],
    v: &'a [T],
    d_o: &'a [T],
    lse: &'a [T],
    delta: &'a [T],
    dim: usize,
    scale: T,
}

impl<T: Real> Pairs<'_, T> {
    fn of(&self, query_row: usize, key_row: usize) -> (T, T) {
        let [query, key] = [query_row, key_row].map(|row| row * self.dim..(row + 1) * self.dim);
        let score = inner(&self.q[query.clone()], &self.k[key.clone()]) * self.scale;
        let p = (score - self.lse[query_row]).exp();
        let dp = inner(&self.d_o[query], &self.v[key]);
        (p, p * (dp - self.delta[query_row]) * self.scale)
    }
}

pub(super) fn backward_query<T: Real>(
    p: &dyn Any,
    [q, k, v, d_o, lse, delta, dq, ..]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let (dim, dq) = (p.dim as usize, dq.write());
    let (q, k, v, d_o, lse, delta) = (
        q.read(),
        k.read(),
        v.read(),
        d_o.read(),
        lse.read(),
        delta.read(),
    );
    let pairs = Pairs {
        q,
        k,
        v,
        d_o,
        lse,
        delta,
        dim,
        scale: T::of(p.scale),
    };
    for b in 0..p.batch as usize {
        for t in 0..p.tokens as usize {
            for h in 0..p.heads as usize {
                let row = p.query_row(b, t, h);
                let mut sum = vec![T::zero(); dim];
                for s in 0..=t {
                    let key = p.key_row(b, s, h / p.group());
                    let (_, ds) = pairs.of(row, key);
                    (0..dim).for_each(|c| sum[c] += ds * k[key * dim + c]);
                }
                for c in 0..dim {
                    let old = if p.add == 0 {
                        T::zero()
                    } else {
                        dq[row * dim + c]
                    };
                    dq[row * dim + c] = old + sum[c];
                }
            }
        }
    }
}

pub(super) fn backward_key_value<T: Real>(
    p: &dyn Any,
    [q, k, v, d_o, lse, delta, dk, dv]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let (dim, dk, dv) = (p.dim as usize, dk.write(), dv.write());
    let (q, k, v, d_o, lse, delta) = (
        q.read(),
        k.read(),
        v.read(),
        d_o.read(),
        lse.read(),
        delta.read(),
    );
    let pairs = Pairs {
        q,
        k,
        v,
        d_o,
        lse,
        delta,
        dim,
        scale: T::of(p.scale),
    };
    for b in 0..p.batch as usize {
        for s in 0..p.tokens as usize {
            for g in 0..p.kv_heads as usize {
                let key = p.key_row(b, s, g);
                let (mut key_sum, mut value_sum) = (vec![T::zero(); dim], vec![T::zero(); dim]);
                for h in g * p.group()..(g + 1) * p.group() {
                    for t in s..p.tokens as usize {
                        let row = p.query_row(b, t, h);
                        let (weight, ds) = pairs.of(row, key);
                        for c in 0..dim {
                            key_sum[c] += ds * q[row * dim + c];
                            value_sum[c] += weight * d_o[row * dim + c];
                        }
                    }
                }
                for c in 0..dim {
                    let at = key * dim + c;
                    dk[at] = if p.add == 0 { T::zero() } else { dk[at] } + key_sum[c];
                    dv[at] = if p.add_value == 0 { T::zero() } else { dv[at] } + value_sum[c];
                }
            }
        }
    }
}
