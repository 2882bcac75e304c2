//! Twins of `shaders/stream_coefficients.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::stream_coefficients::Params;

/// `f(v)` and `f'(v)`.
fn squash<T: Real>(p: &Params, v: T) -> (T, T) {
    if p.squash == 0 {
        return (v, T::one());
    }
    let t = v.tanh();
    (t, T::one() - t * t)
}

fn scale_of(p: &Params, column: usize) -> usize {
    (column / p.group as usize).min(p.scales as usize - 1)
}

pub(super) fn forward<T: Real>(p: &dyn Any, [u, r, scale, bias, c, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (u, r, scale, bias) = (u.read(), r.read(), scale.read(), bias.read());
    let columns = p.columns as usize;
    for (row, c) in c.write().chunks_exact_mut(columns).enumerate() {
        c.copy_from_slice(bias);
        if p.dynamic != 0 {
            for (column, c) in c.iter_mut().enumerate() {
                let item = row * columns + column;
                let (f, _) = squash(p, r[item / p.part as usize] * u[item]);
                *c += scale[scale_of(p, column)] * f;
            }
        }
    }
}

pub(super) fn backward_dots<T: Real>(p: &dyn Any, [u, r, scale, dc, du, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (u, r, scale, dc) = (u.read(), r.read(), scale.read(), dc.read());
    for (item, du) in du.write().iter_mut().enumerate() {
        let r = r[item / p.part as usize];
        let (_, slope) = squash(p, r * u[item]);
        let scale = scale[scale_of(p, item % p.columns as usize)];
        let old = if p.add == 0 { T::zero() } else { *du };
        *du = old + r * scale * slope * dc[item];
    }
}

pub(super) fn backward_factors<T: Real>(p: &dyn Any, [u, r, scale, dc, dr, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (u, r, scale, dc) = (u.read(), r.read(), scale.read(), dc.read());
    let part = p.part as usize;
    for (number, dr) in dr.write().iter_mut().enumerate() {
        let items = number * part..(number + 1) * part;
        let sum: T = items
            .map(|item| {
                let (_, slope) = squash(p, r[number] * u[item]);
                u[item] * scale[scale_of(p, item % p.columns as usize)] * slope * dc[item]
            })
            .sum();
        *dr = if p.add == 0 { sum } else { *dr + sum };
    }
}

pub(super) fn backward_params<T: Real>(p: &dyn Any, [u, r, dc, partial, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (u, r, dc) = (u.read(), r.read(), dc.read());
    let (rows, columns, chunk) = (p.rows as usize, p.columns as usize, p.chunk as usize);
    let width = columns * (1 + p.dynamic as usize);
    for (block, sums) in partial.write().chunks_exact_mut(width).enumerate() {
        sums.fill(T::zero());
        let (plain, weighted) = sums.split_at_mut(columns);
        for row in block * chunk..((block + 1) * chunk).min(rows) {
            let dc = &dc[row * columns..][..columns];
            for (sum, &dc) in plain.iter_mut().zip(dc) {
                *sum += dc;
            }
            for (column, (sum, &dc)) in weighted.iter_mut().zip(dc).enumerate() {
                let item = row * columns + column;
                *sum += squash(p, r[item / p.part as usize] * u[item]).0 * dc;
            }
        }
    }
}

pub(super) fn backward_params_sum<T: Real>(p: &dyn Any, [sums, dbias, dscale, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (sums, dbias, dscale) = (sums.read(), dbias.write(), dscale.write());
    let columns = p.columns as usize;
    for column in 0..columns {
        dbias[column] += sums[column];
        dscale[scale_of(p, column)] += sums[columns + column];
    }
}
