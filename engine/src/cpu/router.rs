//! Twins of `shaders/router.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::router::{ALL, Params, SIGMOID};

/// The sigmoid of a router: clamped as in the shader, so that sums of scores are never 0.
pub(super) fn score<T: Real>(z: T) -> T {
    z.max(T::of(-80.0)).min(T::of(80.0)).sigmoid()
}

fn largest<T: Real>(z: &[T]) -> T {
    z.iter().copied().fold(T::of(-1e30), T::max)
}

/// Numbers of the `chosen.len()` largest scores, largest first, of equal ones the lower first.
fn select<T: Real>(scores: &[T], chosen: &mut [u32]) {
    let mut last: Option<(T, usize)> = None;
    for (slot, chosen) in chosen.iter_mut().enumerate() {
        let mut best: Option<(T, usize)> = None;
        for (e, &score) in scores.iter().enumerate() {
            let behind = last.is_none_or(|(last, at)| score < last || (score == last && e > at));
            if behind && best.is_none_or(|(best, _)| score > best) {
                best = Some((score, e));
            }
        }
        // Scores that are not numbers have no order.
        let best = best.unwrap_or((T::of(-1e30), slot));
        *chosen = best.1 as u32;
        last = Some(best);
    }
}

pub(super) fn forward<T: Real>(p: &dyn Any, [logits, bias, gates, chosen, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (logits, bias) = (logits.read(), bias.read());
    let (gates, chosen) = (gates.write(), chosen.write_ints());
    let (experts, top_k) = (p.experts as usize, p.top_k as usize);
    let rows = logits
        .chunks_exact(experts)
        .zip(gates.chunks_exact_mut(experts));
    let rows = rows.zip(chosen.chunks_exact_mut(top_k));
    for ((z, gates), chosen) in rows.take(p.rows as usize) {
        for e in 0..experts {
            gates[e] = if p.mode == SIGMOID {
                score(z[e]) + bias[e]
            } else {
                z[e]
            };
        }
        select(gates, chosen);
        let largest = largest(z);
        let weight = |z: T| {
            if p.mode == SIGMOID {
                score(z)
            } else {
                (z - largest).exp()
            }
        };
        let sum: T = if p.mode == ALL {
            z.iter().map(|&z| weight(z)).sum()
        } else {
            chosen.iter().map(|&e| weight(z[e as usize])).sum()
        };
        let factor = if p.mode == SIGMOID {
            T::of(p.scale) / (sum + T::of(1e-20))
        } else {
            T::one() / sum
        };
        gates.fill(T::zero());
        for &e in &*chosen {
            gates[e as usize] = factor * weight(z[e as usize]);
        }
    }
}

pub(super) fn backward<T: Real>(
    p: &dyn Any,
    [logits, gates, chosen, dgates, dlogits, ..]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let (logits, gates, chosen) = (logits.read(), gates.read(), chosen.ints());
    let (dgates, dlogits) = (dgates.read(), dlogits.write());
    let (experts, top_k) = (p.experts as usize, p.top_k as usize);
    for row in 0..p.rows as usize {
        let at = row * experts..(row + 1) * experts;
        let (z, g, dg) = (&logits[at.clone()], &gates[at.clone()], &dgates[at.clone()]);
        let dz = &mut dlogits[at];
        let chosen = || chosen[row * top_k..][..top_k].iter().map(|&e| e as usize);
        let along: T = chosen().map(|e| g[e] * dg[e]).sum();
        let largest = largest(z);
        let sum: T = z.iter().map(|&z| (z - largest).exp()).sum();
        for e in 0..experts {
            let old = if p.add == 0 { T::zero() } else { dz[e] };
            let through = if p.mode == ALL {
                -along * (z[e] - largest).exp() / sum
            } else {
                T::zero()
            };
            dz[e] = old + through;
        }
        for e in chosen() {
            dz[e] += match p.mode {
                ALL => g[e] * dg[e],
                SIGMOID => (dg[e] - along / T::of(p.scale)) * g[e] * (T::one() - score(z[e])),
                _ => g[e] * (dg[e] - along),
            };
        }
    }
}
