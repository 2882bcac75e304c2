//! Twins of `shaders/rms_norm.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::rms_norm::Params;

pub(super) fn forward<T: Real>(p: &dyn Any, [x, gain, y, r, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (x, gain, y, r) = (x.read(), gain.read(), y.write(), r.write());
    let dim = p.dim as usize;
    for row in 0..p.rows as usize {
        let x = &x[row * dim..][..dim];
        let squares: T = x.iter().map(|&v| v * v).sum();
        r[row] = T::one() / (squares / T::of(dim as f64) + T::of(p.eps)).sqrt();
        for i in 0..dim {
            y[row * dim + i] = x[i] * r[row] * gain[i];
        }
    }
}

pub(super) fn backward<T: Real>(p: &dyn Any, [x, gain, r, dy, dx, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (x, gain, r, dy, dx) = (x.read(), gain.read(), r.read(), dy.read(), dx.write());
    let dim = p.dim as usize;
    for (row, &r) in r.iter().enumerate().take(p.rows as usize) {
        let at = row * dim;
        let along: T = (0..dim).map(|i| dy[at + i] * gain[i] * x[at + i]).sum();
        for i in 0..dim {
            let old = if p.add == 0 { T::zero() } else { dx[at + i] };
            let through = dy[at + i] * gain[i] - x[at + i] * along * r * r / T::of(dim as f64);
            dx[at + i] = old + r * through;
        }
    }
}

pub(super) fn backward_gain<T: Real>(p: &dyn Any, [x, r, dy, partial, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (x, r, dy, partial) = (x.read(), r.read(), dy.read(), partial.write());
    let (rows, dim, chunk) = (p.rows as usize, p.dim as usize, p.chunk as usize);
    for (block, sums) in partial.chunks_exact_mut(dim).enumerate() {
        for (i, sum) in sums.iter_mut().enumerate() {
            let rows = block * chunk..((block + 1) * chunk).min(rows);
            *sum = rows
                .map(|row| dy[row * dim + i] * x[row * dim + i] * r[row])
                .sum();
        }
    }
}
