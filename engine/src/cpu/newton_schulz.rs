//! Twins of `shaders/newton_schulz.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::optim::newton_schulz::{NORM_EPS, Params};

fn size(p: &Params) -> usize {
    p.rows as usize * p.cols as usize
}

pub(super) fn squares<T: Real>(p: &dyn Any, [x, partial, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (x, partial) = (x.read(), partial.write());
    let chunks = p.chunks as usize;
    let matrices = x
        .chunks_exact(size(p))
        .zip(partial.chunks_exact_mut(chunks));
    for (x, partial) in matrices {
        partial.fill(T::zero());
        for row in x.chunks(chunks) {
            for (sum, &value) in partial.iter_mut().zip(row) {
                *sum += value * value;
            }
        }
    }
}

pub(super) fn norms<T: Real>(p: &dyn Any, [partial, factor, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (partial, factor) = (partial.read(), factor.write());
    for (partial, factor) in partial.chunks_exact(p.chunks as usize).zip(factor) {
        let squares: T = partial.iter().copied().sum();
        *factor = T::one() / (squares.sqrt() + T::of(NORM_EPS));
    }
}

pub(super) fn normalise<T: Real>(p: &dyn Any, [factor, x, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (factor, x) = (factor.read(), x.write());
    for (x, &factor) in x.chunks_exact_mut(size(p)).zip(factor) {
        for x in x {
            *x *= factor;
        }
    }
}

pub(super) fn transpose<T: Real>(p: &dyn Any, [x, y, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (x, y) = (x.read(), y.write());
    let (rows, cols) = (p.rows as usize, p.cols as usize);
    for (x, y) in x.chunks_exact(size(p)).zip(y.chunks_exact_mut(size(p))) {
        for (j, y) in y.chunks_exact_mut(rows).enumerate() {
            for (i, y) in y.iter_mut().enumerate() {
                *y = x[i * cols + j];
            }
        }
    }
}

pub(super) fn polynomial<T: Real>(p: &dyn Any, [x, z, y, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (x, z, y) = (x.read(), z.read(), y.write());
    let (alpha, beta, gamma) = (T::of(p.alpha), T::of(p.beta), T::of(p.gamma));
    for ((y, &x), &z) in y.iter_mut().zip(x).zip(z) {
        *y = beta * x + gamma * z;
    }
    for y in y.chunks_exact_mut(size(p)) {
        for y in y.iter_mut().step_by(p.cols as usize + 1) {
            *y += alpha;
        }
    }
}
