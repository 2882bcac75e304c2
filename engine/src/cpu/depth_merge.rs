//! Twins of `shaders/depth_merge.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::depth_merge::Params;

impl Params {
    /// The partial, from a history.
    fn partial<'a, T>(&self, history: &'a [T]) -> &'a [T] {
        &history[self.partial as usize..][..(self.rows * self.dim) as usize]
    }
}

pub(super) fn share<T: Real>(p: &dyn Any, [scores, lse, a, share, weights, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (scores, lse, a) = (scores.read(), lse.read(), a.read());
    let (share, weights) = (share.write(), weights.write());
    let count = p.count as usize;
    for (row, weights) in weights.chunks_exact_mut(count + 1).enumerate() {
        let last = (scores[row * 2] - lse[row]).sigmoid();
        share[row] = last;
        for (weight, &a) in weights.iter_mut().zip(&a[row * count..][..count]) {
            *weight = (T::one() - last) * a;
        }
        weights[count] = last;
    }
}

pub(super) fn forward<T: Real>(p: &dyn Any, [o1, history, share, mixed, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (o1, history, share, mixed) = (o1.read(), history.read(), share.read(), mixed.write());
    let (dim, partial) = (p.dim as usize, p.partial(history));
    for (row, mixed) in mixed.chunks_exact_mut(dim).enumerate() {
        let (last, at) = (share[row], row * dim);
        for (c, mixed) in mixed.iter_mut().enumerate() {
            *mixed = (T::one() - last) * o1[at + c] + last * partial[at + c];
        }
    }
}

pub(super) fn backward_share<T: Real>(
    p: &dyn Any,
    [o1, history, share, scores, d_mixed, slopes, d_lse, ..]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let (o1, history, share, scores) = (o1.read(), history.read(), share.read(), scores.read());
    let (d_mixed, slopes, d_lse) = (d_mixed.read(), slopes.write(), d_lse.write());
    let (dim, partial) = (p.dim as usize, p.partial(history));
    for row in 0..p.rows as usize {
        let along: T = (row * dim..(row + 1) * dim)
            .map(|i| d_mixed[i] * (partial[i] - o1[i]))
            .sum();
        let dz = share[row] * (T::one() - share[row]) * along;
        let (z, r) = (scores[row * 2], scores[row * 2 + 1]);
        slopes[row * 2] = dz * r;
        slopes[row * 2 + 1] = if p.key_norm == 0 {
            T::zero()
        } else {
            dz * r * r * z / T::of(dim as f64)
        };
        let old = if p.add == 0 { T::zero() } else { d_lse[row] };
        d_lse[row] = old - dz;
    }
}

pub(super) fn backward<T: Real>(p: &dyn Any, [share, g, d_o1, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (share, g, d_o1) = (share.read(), g.read(), d_o1.write());
    let dim = p.dim as usize;
    for ((d_o1, g), &share) in d_o1.chunks_exact_mut(dim).zip(g.chunks(dim)).zip(share) {
        for (d, &g) in d_o1.iter_mut().zip(g) {
            let old = if p.add == 0 { T::zero() } else { *d };
            *d = old + (T::one() - share) * g;
        }
    }
}
