//! Fast twins of `shaders/depth_attention.wgsl`.

use std::any::Any;

use super::math::{exp, wide};
use super::threads::{for_each_part, rows_per_piece};
use crate::cpu::{CpuArgs, params};
use crate::ops::depth_attention::{ADD, MAX_SOURCES, Params, SKIP};

/// Chains of a sum.
const LANES: usize = 32;

/// `<x, y>` and `<x, x>`.
#[inline(always)]
fn inner_and_square(x: &[f32], y: &[f32]) -> (f32, f32) {
    let (mut along, mut squares) = ([0.0; LANES], [0.0; LANES]);
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    for (x, y) in x.iter().zip(y) {
        for i in 0..LANES {
            along[i] += x[i] * y[i];
            squares[i] += x[i] * x[i];
        }
    }
    for (i, (x, y)) in x_rest.iter().zip(y_rest).enumerate() {
        along[i] += x * y;
        squares[i] += x * x;
    }
    (total(along), total(squares))
}

/// `<x, y>`.
#[inline(always)]
fn inner(x: &[f32], y: &[f32]) -> f32 {
    let mut chains = [0.0; LANES];
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    for (x, y) in x.iter().zip(y) {
        for i in 0..LANES {
            chains[i] += x[i] * y[i];
        }
    }
    for (chain, (x, y)) in chains.iter_mut().zip(x_rest.iter().zip(y_rest)) {
        *chain += x * y;
    }
    total(chains)
}

/// Add the chains pairwise.
#[inline(always)]
fn total(mut chains: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            chains[i] += chains[i + half];
        }
        half /= 2;
    }
    chains[0]
}

/// `u = q * gain`, for the row of the query that asks.
fn scaled_query(p: &Params, query: &[f32], gain: &[f32]) -> Vec<f32> {
    let dim = p.dim as usize;
    let query = &query[p.query_row as usize * dim..][..dim];
    query.iter().zip(gain).map(|(q, gain)| q * gain).collect()
}

wide! {
    fn score_rows(p: &Params, first: usize, history: &[f32], u: &[f32], scores: &mut [f32]) {
        let (count, heads) = (p.count as usize, p.heads as usize);
        for (row, scores) in scores.chunks_exact_mut(2 * count).enumerate() {
            let (row, head) = ((first + row) / heads, p.head((first + row) % heads));
            for (i, score) in scores.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                let key = &history[p.key(i, row)..][..u.len()];
                let (along, squares) = if heads == 1 {
                    inner_and_square(key, u)
                } else {
                    (inner(&key[head.clone()], &u[head.clone()]), inner(key, key))
                };
                let r = if p.key_norm == 0 {
                    1.0
                } else {
                    1.0 / (squares / u.len() as f32 + p.eps as f32).sqrt()
                };
                *score = [r * along, r];
            }
        }
    }
}

pub(super) fn scores(p: &dyn Any, [history, query, gain, scores, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (history, scores) = (history.read(), scores.write());
    let u = scaled_query(p, query.read(), gain.read());
    let width = 2 * p.count as usize;
    let rows = rows_per_piece(4 * (p.count * p.dim) as usize);
    for_each_part(scores, rows * width, |piece, scores| {
        score_rows(p, piece * rows, history, &u, scores);
    });
}

pub(super) fn softmax(p: &dyn Any, [scores, weights, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (scores, weights) = (scores.read(), weights.write());
    let (count, columns) = (p.count as usize, p.columns as usize);
    let rows = rows_per_piece(20 * columns);
    for_each_part(weights, rows * columns, |piece, weights| {
        for (row, weights) in weights.chunks_exact_mut(columns).enumerate() {
            let scores = &scores[(piece * rows + row) * 2 * count..][..2 * count];
            weights[columns - 1] = p.null_logit as f32; // overwritten if there is no null source
            let mut top = if p.null_source == 0 {
                -1e30
            } else {
                weights[columns - 1]
            };
            for (weight, score) in weights.iter_mut().zip(scores.as_chunks::<2>().0) {
                *weight = score[0];
                top = f32::max(top, score[0]);
            }
            weights
                .iter_mut()
                .for_each(|weight| *weight = exp(*weight - top));
            let total: f32 = weights.iter().sum();
            weights.iter_mut().for_each(|weight| *weight /= total);
        }
    });
}

pub(super) fn sigmoid_weights(_: &dyn Any, [scores, weights, ..]: CpuArgs<'_, f32>) {
    let (scores, weights) = (scores.read().as_chunks::<2>().0, weights.write());
    let items = rows_per_piece(20);
    for_each_part(weights, items, |piece, weights| {
        for (weight, score) in weights.iter_mut().zip(&scores[piece * items..]) {
            *weight = 1.0 / (1.0 + exp(-score[0]));
        }
    });
}

/// What is taken from every weight when values are mixed.
#[inline(always)]
fn mean_weight(p: &Params) -> f32 {
    if p.centered == 0 {
        0.0
    } else {
        1.0 / p.count as f32
    }
}

wide! {
    fn mix_rows(p: &Params, first: usize, history: &[f32], weights: &[f32], mixed: &mut [f32]) {
        let (dim, heads, columns) = (p.head_dim(), p.heads as usize, p.columns as usize);
        for (row, mixed) in mixed.chunks_exact_mut(dim).enumerate() {
            let head_row = first * heads + row;
            let (row, skipped) = (head_row / heads, head_row % heads * dim);
            let mut shares = [(0.0, 0); MAX_SOURCES];
            let shares = &mut shares[..p.count as usize];
            for (i, share) in shares.iter_mut().enumerate() {
                let w = weights[head_row * columns + i] - mean_weight(p);
                *share = (w, p.value(i, row) + skipped);
            }
            let (blocks, rest) = mixed.as_chunks_mut::<LANES>();
            for (block, mixed) in blocks.iter_mut().enumerate() {
                let mut sums = [0.0; LANES];
                for &(w, value) in shares.iter() {
                    let value = &history[value + block * LANES..][..LANES];
                    for c in 0..LANES {
                        sums[c] += w * value[c];
                    }
                }
                *mixed = sums;
            }
            let done = dim - rest.len();
            rest.fill(0.0);
            for &(w, value) in shares.iter() {
                let value = &history[value + done..][..rest.len()];
                for (mixed, value) in rest.iter_mut().zip(value) {
                    *mixed += w * value;
                }
            }
        }
    }
}

pub(super) fn forward(p: &dyn Any, [history, weights, mixed, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (history, weights, mixed) = (history.read(), weights.read(), mixed.write());
    let dim = p.dim as usize;
    let rows = rows_per_piece(2 * p.count as usize * dim);
    for_each_part(mixed, rows * dim, |piece, mixed| {
        mix_rows(p, piece * rows, history, weights, mixed);
    });
}

wide! {
    fn product_rows(p: &Params, first: usize, history: &[f32], d_mixed: &[f32], slopes: &mut [f32]) {
        let (dim, heads, count) = (p.head_dim(), p.heads as usize, p.count as usize);
        for (row, slopes) in slopes.chunks_exact_mut(2 * count).enumerate() {
            let head_row = first + row;
            let (row, skipped) = (head_row / heads, head_row % heads * dim);
            let g = &d_mixed[head_row * dim..][..dim];
            for (i, slope) in slopes.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                let value = &history[p.value(i, row) + skipped..][..dim];
                *slope = [inner(value, g), 0.0];
            }
        }
    }
}

pub(super) fn backward_scores(p: &dyn Any, [history, d_mixed, slopes, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (history, d_mixed, slopes) = (history.read(), d_mixed.read(), slopes.write());
    let width = 2 * p.count as usize;
    let rows = rows_per_piece(3 * (p.count * p.dim) as usize);
    for_each_part(slopes, rows * width, |piece, slopes| {
        product_rows(p, piece * rows, history, d_mixed, slopes);
    });
}

/// The second slope of a source, from the first: what pulls the key towards zero.
#[inline(always)]
fn bend(p: &Params, slope: f32, r: f32, z: f32) -> f32 {
    if p.key_norm == 0 {
        0.0
    } else {
        slope * r * z / p.dim as f32
    }
}

pub(super) fn backward_softmax(p: &dyn Any, [scores, weights, slopes, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (scores, weights, slopes) = (scores.read(), weights.read(), slopes.write());
    let (count, columns) = (p.count as usize, p.columns as usize);
    let rows = rows_per_piece(10 * count);
    for_each_part(slopes, rows * 2 * count, |piece, slopes| {
        for (row, slopes) in slopes.chunks_exact_mut(2 * count).enumerate() {
            let row = piece * rows + row;
            let weights = &weights[row * columns..][..count];
            let scores = scores[row * 2 * count..][..2 * count].as_chunks::<2>().0;
            let slopes = slopes.as_chunks_mut::<2>().0;
            let mean: f32 = weights
                .iter()
                .zip(&*slopes)
                .map(|(a, slope)| a * slope[0])
                .sum();
            for ((slope, &[z, r]), a) in slopes.iter_mut().zip(scores).zip(weights) {
                let dz = a * (slope[0] - mean) * r;
                *slope = [dz, bend(p, dz, r, z)];
            }
        }
    });
}

pub(super) fn backward_sigmoid(p: &dyn Any, [scores, weights, slopes, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (scores, weights) = (scores.read().as_chunks::<2>().0, weights.read());
    let items = rows_per_piece(10);
    for_each_part(slopes.write(), 2 * items, |piece, slopes| {
        let slopes = slopes.as_chunks_mut::<2>().0;
        let (scores, weights) = (&scores[piece * items..], &weights[piece * items..]);
        for ((slope, &[z, r]), a) in slopes.iter_mut().zip(scores).zip(weights) {
            let dz = a * (1.0 - a) * slope[0] * r;
            *slope = [dz, bend(p, dz, r, z)];
        }
    });
}

/// What one source adds to the gradient of one slot.
#[derive(Clone, Copy, Debug)]
struct Part {
    source: usize,
    /// The slot is the source's value.
    value: bool,
    /// The slot is the source's key.
    key: bool,
    add: bool,
}

/// The parts of a slot, in the order in which the kernel adds them.
fn parts(p: &Params, slot: u32) -> impl Iterator<Item = Part> {
    (0..p.count as usize).flat_map(move |source| {
        let value = p.value_slots[source] == slot;
        let key = p.key_slots[source] == slot;
        let how = if value {
            p.value_update[source]
        } else {
            p.key_update[source]
        };
        let part = Part {
            source,
            value,
            key,
            add: how == ADD,
        };
        ((value || key) && how != SKIP).then_some(part)
    })
}

/// What the gradient of the sources reads.
struct Inputs<'a> {
    p: &'a Params,
    history: &'a [f32],
    u: &'a [f32],
    weights: &'a [f32],
    slopes: &'a [f32],
    d_mixed: &'a [f32],
}

wide! {
    fn update_rows(x: &Inputs<'_>, part: Part, first: usize, d: &mut [f32]) {
        let (p, dim, i) = (x.p, x.u.len(), part.source);
        let (count, heads) = (p.count as usize, p.heads as usize);
        for (row, d) in d.chunks_exact_mut(dim).enumerate() {
            let row = first + row;
            if !part.add {
                d.fill(0.0);
            }
            // All heads pull at the length of the whole key.
            let slope = |head_row: usize| (head_row * count + i) * 2;
            let heads = row * heads..(row + 1) * heads;
            let bend: f32 = heads.clone().map(|head| x.slopes[slope(head) + 1]).sum();
            let key = &x.history[p.key(i, row)..][..dim];
            for (head, head_row) in heads.enumerate() {
                let slope = x.slopes[slope(head_row)];
                let w = x.weights[head_row * p.columns as usize + i] - mean_weight(p);
                let own = p.head(head);
                let d = &mut d[own.clone()];
                let (g, u) = (&x.d_mixed[row * dim..][own.clone()], &x.u[own.clone()]);
                let k = &key[own];
                if part.value && part.key {
                    for (((d, g), u), k) in d.iter_mut().zip(g).zip(u).zip(k) {
                        *d += w * g + (slope * u - bend * k);
                    }
                } else if part.value {
                    for (d, g) in d.iter_mut().zip(g) {
                        *d += w * g;
                    }
                } else {
                    for ((d, u), k) in d.iter_mut().zip(u).zip(k) {
                        *d += slope * u - bend * k;
                    }
                }
            }
        }
    }
}

pub(super) fn backward(
    p: &dyn Any,
    [
        history,
        query,
        gain,
        weights,
        slopes,
        d_mixed,
        d_history,
        ..,
    ]: CpuArgs<'_, f32>,
) {
    let p: &Params = params(p);
    let d_history = d_history.write();
    let u = scaled_query(p, query.read(), gain.read());
    let inputs = Inputs {
        p,
        history: history.read(),
        u: &u,
        weights: weights.read(),
        slopes: slopes.read(),
        d_mixed: d_mixed.read(),
    };
    let dim = p.dim as usize;
    let rows = rows_per_piece(8 * dim);
    for_each_part(d_history, p.stride as usize, |slot, d| {
        let slot = slot as u32;
        if parts(p, slot).next().is_none() {
            return;
        }
        for_each_part(&mut d[..p.rows as usize * dim], rows * dim, |piece, d| {
            for part in parts(p, slot) {
                update_rows(&inputs, part, piece * rows, d);
            }
        });
    });
}

wide! {
    fn sum_block(p: &Params, rows: std::ops::Range<usize>, history: &[f32], slopes: &[f32], sums: &mut [f32]) {
        sums.fill(0.0);
        let (count, heads) = (p.count as usize, p.heads as usize);
        for i in 0..count {
            for row in rows.clone() {
                let key = &history[p.key(i, row)..][..sums.len()];
                let parts = sums.chunks_exact_mut(p.head_dim()).zip(key.chunks_exact(p.head_dim()));
                for (head, (sums, key)) in parts.enumerate() {
                    let slope = slopes[((row * heads + head) * count + i) * 2];
                    for (sum, k) in sums.iter_mut().zip(key) {
                        *sum += slope * k;
                    }
                }
            }
        }
    }
}

pub(super) fn backward_query(p: &dyn Any, [history, slopes, partial, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (history, slopes, partial) = (history.read(), slopes.read(), partial.write());
    let (rows, dim, chunk) = (p.rows as usize, p.dim as usize, p.chunk as usize);
    let blocks = rows_per_piece(2 * p.count as usize * dim * chunk);
    for_each_part(partial, blocks * dim, |piece, partial| {
        for (block, sums) in partial.chunks_exact_mut(dim).enumerate() {
            let first = (piece * blocks + block) * chunk;
            sum_block(p, first..(first + chunk).min(rows), history, slopes, sums);
        }
    });
}

pub(super) fn backward_query_sum(
    p: &dyn Any,
    [partial, query, gain, d_query, d_gain, ..]: CpuArgs<'_, f32>,
) {
    let p: &Params = params(p);
    let (partial, query, gain) = (partial.read(), query.read(), gain.read());
    let (d_query, d_gain) = (d_query.write(), d_gain.write());
    let dim = p.dim as usize;
    if p.add_query == 0 {
        d_query.fill(0.0);
    }
    if p.add_gain == 0 {
        d_gain.fill(0.0);
    }
    let mut du = vec![0.0; dim];
    for block in partial.chunks_exact(dim) {
        du.iter_mut()
            .zip(block)
            .for_each(|(du, block)| *du += block);
    }
    let asked = p.query_row as usize * dim;
    for (c, du) in du.into_iter().enumerate() {
        d_query[asked + c] += gain[c] * du;
        d_gain[c] += query[asked + c] * du;
    }
}
