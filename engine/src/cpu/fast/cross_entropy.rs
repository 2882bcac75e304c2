//! Fast twins of `shaders/cross_entropy.wgsl`.

use std::any::Any;

use super::math::{exp, max, sum_exp, wide};
use super::threads::{for_each_pair, for_each_part, rows_per_piece};
use crate::cpu::{CpuArgs, params};
use crate::ops::cross_entropy::Params;

/// Float operations a logit, exponential included.
const COST: usize = 16;

wide! {
    fn reduce(logits: &[f32], vocab: usize, largest: &mut [f32], sums: &mut [f32]) {
        for ((logits, largest), sum) in logits.chunks_exact(vocab).zip(largest).zip(sums) {
            *largest = max(logits);
            *sum = sum_exp(logits, *largest);
        }
    }
}

pub(super) fn forward(
    p: &dyn Any,
    [logits, labels, row_losses, largest, sums, ..]: CpuArgs<'_, f32>,
) {
    let p: &Params = params(p);
    let (logits, labels) = (logits.read(), labels.ints());
    let (row_losses, largest, sums) = (row_losses.write(), largest.write(), sums.write());
    let vocab = p.vocab as usize;
    let rows = rows_per_piece(COST * vocab);
    for_each_pair((largest, rows), (sums, rows), |piece, largest, sums| {
        let logits = &logits[piece * rows * vocab..][..sums.len() * vocab];
        reduce(logits, vocab, largest, sums);
    });
    for (row, loss) in row_losses.iter_mut().enumerate() {
        let label = labels[row].min(p.vocab - 1) as usize;
        *loss = sums[row].ln() + (largest[row] - logits[row * vocab + label]);
    }
}

wide! {
    fn differentiate(logits: &[f32], largest: f32, factor: f32, d_logits: &mut [f32], add: bool) {
        for (d, z) in d_logits.iter_mut().zip(logits) {
            *d = if add { *d } else { 0.0 } + exp(z - largest) * factor;
        }
    }
}

pub(super) fn backward(
    p: &dyn Any,
    [logits, labels, largest, sums, d_loss, d_logits, ..]: CpuArgs<'_, f32>,
) {
    let p: &Params = params(p);
    let (logits, labels) = (logits.read(), labels.ints());
    let (largest, sums, d_logits) = (largest.read(), sums.read(), d_logits.write());
    let vocab = p.vocab as usize;
    let factor = d_loss.read()[0] * p.scale as f32 / p.rows as f32;
    let rows = rows_per_piece(COST * vocab);
    for_each_part(d_logits, rows * vocab, |piece, d_logits| {
        for (row, d_logits) in d_logits.chunks_exact_mut(vocab).enumerate() {
            let row = piece * rows + row;
            let logits = &logits[row * vocab..][..vocab];
            differentiate(
                logits,
                largest[row],
                factor / sums[row],
                d_logits,
                p.add != 0,
            );
            d_logits[labels[row].min(p.vocab - 1) as usize] -= factor;
        }
    });
}
