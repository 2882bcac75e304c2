//! Twins of `shaders/expert_rows.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::expert_rows::Params;
use crate::ops::expert_sort::NONE;

/// `y += factor x`
fn add_scaled<T: Real>(y: &mut [T], factor: T, x: &[T]) {
    y.iter_mut().zip(x).for_each(|(y, &x)| *y += factor * x);
}

pub(super) fn forward_gather<T: Real>(p: &dyn Any, [row_pair, x, xs, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (row_pair, x, xs) = (row_pair.ints(), x.read(), xs.write());
    let dim = p.dim as usize;
    for (&pair, xs) in row_pair.iter().zip(xs.chunks_exact_mut(dim)) {
        if pair == NONE {
            xs.fill(T::zero());
        } else {
            xs.copy_from_slice(&x[(pair / p.top_k) as usize * dim..][..dim]);
        }
    }
}

pub(super) fn backward_gather<T: Real>(p: &dyn Any, [slot_row, dxs, dx, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (slot_row, dxs, dx) = (slot_row.ints(), dxs.read(), dx.write());
    let dim = p.dim as usize;
    let tokens = dx
        .chunks_exact_mut(dim)
        .zip(slot_row.chunks_exact(p.top_k as usize));
    for (dx, rows) in tokens {
        if p.add == 0 {
            dx.fill(T::zero());
        }
        for &row in rows {
            add_scaled(dx, T::one(), &dxs[row as usize * dim..][..dim]);
        }
    }
}

pub(super) fn forward_combine<T: Real>(
    p: &dyn Any,
    [slot_row, chosen, gates, u, y, ..]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let (slot_row, chosen) = (slot_row.ints(), chosen.ints());
    let (gates, u, y) = (gates.read(), u.read(), y.write());
    let (dim, top_k) = (p.dim as usize, p.top_k as usize);
    for (token, y) in y.chunks_exact_mut(dim).enumerate() {
        let gates = &gates[token * p.experts as usize..];
        y.fill(T::zero());
        for pair in token * top_k..(token + 1) * top_k {
            let row = slot_row[pair] as usize;
            add_scaled(y, gates[chosen[pair] as usize], &u[row * dim..][..dim]);
        }
    }
}

pub(super) fn backward_combine_rows<T: Real>(
    p: &dyn Any,
    [row_pair, chosen, gates, dy, du, ..]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let (row_pair, chosen) = (row_pair.ints(), chosen.ints());
    let (gates, dy, du) = (gates.read(), dy.read(), du.write());
    let dim = p.dim as usize;
    for (&pair, du) in row_pair.iter().zip(du.chunks_exact_mut(dim)) {
        if p.add == 0 {
            du.fill(T::zero());
        }
        if pair != NONE {
            let token = (pair / p.top_k) as usize;
            let gate = gates[token * p.experts as usize + chosen[pair as usize] as usize];
            add_scaled(du, gate, &dy[token * dim..][..dim]);
        }
    }
}

pub(super) fn backward_combine_gates<T: Real>(
    p: &dyn Any,
    [slot_row, chosen, u, dy, dgates, ..]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let (slot_row, chosen) = (slot_row.ints(), chosen.ints());
    let (u, dy, dgates) = (u.read(), dy.read(), dgates.write());
    let (dim, top_k) = (p.dim as usize, p.top_k as usize);
    for (token, dgates) in dgates.chunks_exact_mut(p.experts as usize).enumerate() {
        if p.add == 0 {
            dgates.fill(T::zero());
        }
        let dy = &dy[token * dim..][..dim];
        for pair in token * top_k..(token + 1) * top_k {
            let u = &u[slot_row[pair] as usize * dim..][..dim];
            dgates[chosen[pair] as usize] += dy.iter().zip(u).map(|(&dy, &u)| dy * u).sum();
        }
    }
}
