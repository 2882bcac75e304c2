//! Twins of `shaders/router_loss.wgsl`.

use std::any::Any;

use super::router::score;
use super::{CpuArgs, Real, params};
use crate::ops::router_loss::Params;

pub(super) fn forward_norms<T: Real>(p: &dyn Any, [logits, norms, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let rows = logits.read().chunks_exact(p.experts as usize);
    for (z, norms) in rows.zip(norms.write().chunks_exact_mut(2)) {
        let largest = z.iter().copied().fold(T::of(-1e30), T::max);
        let sum: T = z.iter().map(|&z| (z - largest).exp()).sum();
        norms[0] = largest + sum.ln();
        norms[1] = z.iter().map(|&z| score(z)).sum();
    }
}

/// What the balance loss calls the probability of an expert.
fn probability<T: Real>(p: &Params, z: T, norms: &[T]) -> T {
    if p.sigmoid == 0 {
        (z - norms[0]).exp()
    } else {
        score(z) / norms[1]
    }
}

pub(super) fn forward_blocks<T: Real>(
    p: &dyn Any,
    [logits, chosen, norms, partial, ..]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let (logits, chosen) = (logits.read(), chosen.ints());
    let (norms, partial) = (norms.read(), partial.write());
    let (experts, top_k) = (p.experts as usize, p.top_k as usize);
    let (span, blocks) = (p.span as usize, p.span.div_ceil(p.chunk) as usize);
    for (block, sums) in partial.chunks_exact_mut(2 * experts + 1).enumerate() {
        let group = block / blocks;
        let first = group * span + block % blocks * p.chunk as usize;
        sums.fill(T::zero());
        for row in first..(first + p.chunk as usize).min((group + 1) * span) {
            for &e in &chosen[row * top_k..][..top_k] {
                sums[e as usize] += T::one();
            }
            let norms = &norms[2 * row..][..2];
            for e in 0..experts {
                sums[experts + e] += probability(p, logits[row * experts + e], norms);
            }
            sums[2 * experts] += norms[0] * norms[0];
        }
    }
}

pub(super) fn forward_groups<T: Real>(p: &dyn Any, [partial, sums, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let columns = 2 * p.experts as usize + 1;
    let groups = partial
        .read()
        .chunks_exact(columns * p.span.div_ceil(p.chunk) as usize);
    for (sums, blocks) in sums.write().chunks_exact_mut(columns).zip(groups) {
        sums.fill(T::zero());
        for block in blocks.chunks_exact(columns) {
            sums.iter_mut()
                .zip(block)
                .for_each(|(sum, &part)| *sum += part);
        }
    }
}

/// `f_e` of a count.
fn frequency<T: Real>(p: &Params, count: T) -> T {
    T::of(f64::from(p.experts)) * count / (T::of(f64::from(p.top_k)) * T::of(f64::from(p.span)))
}

pub(super) fn forward<T: Real>(
    p: &dyn Any,
    [sums, balance, z_loss, statistics, ..]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let experts = p.experts as usize;
    let (sums, statistics) = (sums.read(), statistics.write());
    let groups = || sums.chunks_exact(2 * experts + 1);
    let rows = T::of(f64::from(p.rows));
    for e in 0..experts {
        statistics[e] = groups().map(|sums| sums[e]).sum();
        statistics[experts + e] = groups().map(|sums| sums[experts + e]).sum::<T>() / rows;
    }
    let uses =
        groups().flat_map(|sums| (0..experts).map(|e| frequency(p, sums[e]) * sums[experts + e]));
    balance.write()[0] = T::of(p.balance_factor) * uses.sum() / rows;
    let squares: T = groups().map(|sums| sums[2 * experts]).sum();
    z_loss.write()[0] = T::of(p.z_factor) * squares / rows;
}

pub(super) fn backward<T: Real>(
    p: &dyn Any,
    [logits, norms, sums, dbalance, dz, dlogits, ..]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let (logits, norms, sums) = (logits.read(), norms.read(), sums.read());
    let (dbalance, dz, dlogits) = (dbalance.read(), dz.read(), dlogits.write());
    let (experts, rows) = (p.experts as usize, T::of(f64::from(p.rows)));
    let part = |has: u32, d: &[T], factor: f64| {
        if has == 0 {
            T::zero()
        } else {
            d[0] * T::of(factor) / rows
        }
    };
    let factor = part(p.has_dbalance, dbalance, p.balance_factor);
    let z_factor = part(p.has_dz, dz, p.z_factor) * T::of(2.0);
    for row in 0..p.rows as usize {
        let (z, norms) = (&logits[row * experts..][..experts], &norms[2 * row..][..2]);
        let counts = &sums[row / p.span as usize * (2 * experts + 1)..][..experts];
        let d = |e: usize| factor * frequency(p, counts[e]);
        let along: T = (0..experts)
            .map(|e| probability(p, z[e], norms) * d(e))
            .sum();
        for (e, &z) in z.iter().enumerate() {
            let softmax = (z - norms[0]).exp();
            let slope = if p.sigmoid == 0 {
                softmax
            } else {
                score(z) * (T::one() - score(z)) / norms[1]
            };
            let at = row * experts + e;
            let old = if p.add == 0 { T::zero() } else { dlogits[at] };
            dlogits[at] = old + slope * (d(e) - along) + z_factor * norms[0] * softmax;
        }
    }
}
