//! Twins of `shaders/static_mix.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::depth_attention::{SKIP, STORE};
use crate::ops::static_mix::Params;

impl Params {
    /// Where source `i` lies in the history.
    fn source(&self, i: usize) -> std::ops::Range<usize> {
        let start = self.slots[i] as usize * self.stride as usize;
        start..start + self.len as usize
    }
}

pub(super) fn forward<T: Real>(p: &dyn Any, [history, weights, mixed, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (history, weights, mixed) = (history.read(), weights.read(), mixed.write());
    mixed.fill(T::zero());
    for (i, &w) in weights.iter().enumerate() {
        for (mixed, &x) in mixed.iter_mut().zip(&history[p.source(i)]) {
            *mixed += w * x;
        }
    }
}

pub(super) fn backward<T: Real>(p: &dyn Any, [weights, d_mixed, d_history, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (weights, d_mixed, d_history) = (weights.read(), d_mixed.read(), d_history.write());
    for (i, &w) in weights.iter().enumerate() {
        if p.update[i] == SKIP {
            continue;
        }
        let d = &mut d_history[p.source(i)];
        if p.update[i] == STORE {
            d.fill(T::zero());
        }
        for (d, &g) in d.iter_mut().zip(d_mixed) {
            *d += w * g;
        }
    }
}

pub(super) fn backward_weights<T: Real>(
    p: &dyn Any,
    [history, d_mixed, partial, ..]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let (history, d_mixed, partial) = (history.read(), d_mixed.read(), partial.write());
    let (parts, count) = (p.parts as usize, p.count as usize);
    let mut sums = vec![T::zero(); parts];
    for i in 0..count {
        sums.fill(T::zero());
        let x = &history[p.source(i)];
        // A stretch of `parts` elements has one term of every sum.
        for (g, x) in d_mixed.chunks(parts).zip(x.chunks(parts)) {
            for ((sum, &g), &x) in sums.iter_mut().zip(g).zip(x) {
                *sum += g * x;
            }
        }
        for (part, &sum) in sums.iter().enumerate() {
            partial[part * count + i] = sum;
        }
    }
}
