//! Twins of `shaders/cross_entropy.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::cross_entropy::Params;

/// Labels that are too large count as the last.
fn label(p: &Params, labels: &[u32], row: usize) -> usize {
    labels[row].min(p.vocab - 1) as usize
}

pub(super) fn forward<T: Real>(
    p: &dyn Any,
    [logits, labels, row_losses, largest, sum, ..]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let (logits, labels) = (logits.read(), labels.ints());
    let (row_losses, largest, sum) = (row_losses.write(), largest.write(), sum.write());
    for (row, logits) in logits.chunks_exact(p.vocab as usize).enumerate() {
        largest[row] = logits.iter().copied().fold(T::of(-1e30), T::max);
        sum[row] = logits.iter().map(|&z| (z - largest[row]).exp()).sum();
        row_losses[row] = sum[row].ln() + (largest[row] - logits[label(p, labels, row)]);
    }
}

pub(super) fn forward_blocks<T: Real>(p: &dyn Any, [row_losses, block_losses, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let blocks = row_losses.read().chunks(p.chunk as usize);
    for (out, block) in block_losses.write().iter_mut().zip(blocks) {
        *out = block.iter().copied().sum();
    }
}

pub(super) fn forward_mean<T: Real>(p: &dyn Any, [block_losses, loss, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let sum: T = block_losses.read().iter().copied().sum();
    loss.write()[0] = sum * T::of(p.scale) / T::of(f64::from(p.rows));
}

pub(super) fn backward<T: Real>(
    p: &dyn Any,
    [logits, labels, largest, sum, d_loss, d_logits, ..]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let (logits, labels) = (logits.read(), labels.ints());
    let (largest, sum) = (largest.read(), sum.read());
    let (d_loss, d_logits) = (d_loss.read(), d_logits.write());
    let vocab = p.vocab as usize;
    let factor = d_loss[0] * T::of(p.scale) / T::of(f64::from(p.rows));
    for row in 0..p.rows as usize {
        for v in 0..vocab {
            let at = row * vocab + v;
            let old = if p.add == 0 { T::zero() } else { d_logits[at] };
            let hit = if v == label(p, labels, row) {
                T::one()
            } else {
                T::zero()
            };
            d_logits[at] = old + factor * ((logits[at] - largest[row]).exp() / sum[row] - hit);
        }
    }
}
