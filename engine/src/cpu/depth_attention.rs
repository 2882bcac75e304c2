//! Twins of `shaders/depth_attention.wgsl`; `depth_attention_vec4.wgsl` computes the same.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::depth_attention::{ADD, Params, SKIP};

impl Params {
    /// Where a row of the key of source `i` starts.
    #[inline]
    pub(crate) fn key(&self, i: usize, row: usize) -> usize {
        self.key_slots[i] as usize * self.stride as usize + row * self.dim as usize
    }

    /// Where a row of the value of source `i` starts.
    #[inline]
    pub(crate) fn value(&self, i: usize, row: usize) -> usize {
        self.value_slots[i] as usize * self.stride as usize + row * self.dim as usize
    }

    /// Channels of a head.
    pub(crate) fn head_dim(&self) -> usize {
        (self.dim / self.heads) as usize
    }

    /// The channels of head `head`.
    pub(crate) fn head(&self, head: usize) -> std::ops::Range<usize> {
        head * self.head_dim()..(head + 1) * self.head_dim()
    }

    /// The second slope of a source, from the first: what pulls the key towards zero.
    fn bend<T: Real>(&self, slope: T, r: T, z: T) -> T {
        if self.key_norm == 0 {
            T::zero()
        } else {
            slope * r * z / T::of(f64::from(self.dim))
        }
    }

    /// What is taken from every weight when values are mixed.
    fn mean_weight<T: Real>(&self) -> T {
        if self.centered == 0 {
            T::zero()
        } else {
            T::one() / T::of(f64::from(self.count))
        }
    }
}

pub(super) fn scores<T: Real>(p: &dyn Any, [history, query, gain, scores, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (history, query, gain, scores) =
        (history.read(), query.read(), gain.read(), scores.write());
    let (dim, heads, count) = (p.dim as usize, p.heads as usize, p.count as usize);
    let query = &query[p.query_row as usize * dim..][..dim];
    for (head_row, scores) in scores.chunks_exact_mut(2 * count).enumerate() {
        let (row, head) = (head_row / heads, head_row % heads);
        for (i, score) in scores.chunks_exact_mut(2).enumerate() {
            let key = &history[p.key(i, row)..][..dim];
            let along: T = p.head(head).map(|c| query[c] * gain[c] * key[c]).sum();
            let squares: T = key.iter().map(|&k| k * k).sum();
            let r = if p.key_norm == 0 {
                T::one()
            } else {
                T::one() / (squares / T::of(dim as f64) + T::of(p.eps)).sqrt()
            };
            (score[0], score[1]) = (r * along, r);
        }
    }
}

pub(super) fn softmax<T: Real>(p: &dyn Any, [scores, weights, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (scores, weights) = (scores.read(), weights.write());
    let (count, columns) = (p.count as usize, p.columns as usize);
    for (row, weights) in weights.chunks_exact_mut(columns).enumerate() {
        for (i, weight) in weights.iter_mut().enumerate() {
            *weight = if i < count {
                scores[(row * count + i) * 2]
            } else {
                T::of(p.null_logit)
            };
        }
        let top = weights.iter().copied().fold(T::neg_infinity(), T::max);
        weights
            .iter_mut()
            .for_each(|weight| *weight = (*weight - top).exp());
        let total: T = weights.iter().copied().sum();
        weights.iter_mut().for_each(|weight| *weight /= total);
    }
}

pub(super) fn sigmoid_weights<T: Real>(_: &dyn Any, [scores, weights, ..]: CpuArgs<'_, T>) {
    for (weight, score) in weights.write().iter_mut().zip(scores.read().chunks(2)) {
        *weight = score[0].sigmoid();
    }
}

pub(super) fn log_sum<T: Real>(p: &dyn Any, [scores, weights, lse, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (scores, weights, lse) = (scores.read(), weights.read(), lse.write());
    let count = p.count as usize;
    for (row, lse) in lse.iter_mut().enumerate() {
        let mut at = row * count;
        for i in at + 1..(row + 1) * count {
            if scores[i * 2] > scores[at * 2] {
                at = i;
            }
        }
        *lse = scores[at * 2] - weights[at].ln();
    }
}

pub(super) fn forward<T: Real>(p: &dyn Any, [history, weights, mixed, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (history, weights, mixed) = (history.read(), weights.read(), mixed.write());
    let (dim, heads) = (p.dim as usize, p.heads as usize);
    for row in 0..p.rows as usize {
        for c in 0..dim {
            let first = (row * heads + c / p.head_dim()) * p.columns as usize;
            mixed[row * dim + c] = (0..p.count as usize)
                .map(|i| (weights[first + i] - p.mean_weight()) * history[p.value(i, row) + c])
                .sum();
        }
    }
}

pub(super) fn backward_scores<T: Real>(
    p: &dyn Any,
    [history, d_mixed, slopes, ..]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let (history, d_mixed, slopes) = (history.read(), d_mixed.read(), slopes.write());
    let (dim, heads, count) = (p.dim as usize, p.heads as usize, p.count as usize);
    for (head_row, slopes) in slopes.chunks_exact_mut(2 * count).enumerate() {
        let (row, head) = (head_row / heads, head_row % heads);
        for (i, slope) in slopes.chunks_exact_mut(2).enumerate() {
            let value = &history[p.value(i, row)..][..dim];
            let head = p.head(head);
            slope[0] = head.map(|c| d_mixed[row * dim + c] * value[c]).sum();
            slope[1] = T::zero();
        }
    }
}

pub(super) fn backward_softmax<T: Real>(
    p: &dyn Any,
    [scores, weights, slopes, ..]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let (scores, weights, slopes) = (scores.read(), weights.read(), slopes.write());
    let count = p.count as usize;
    for row in 0..(p.rows * p.heads) as usize {
        let weights = &weights[row * p.columns as usize..];
        let mean: T = (0..count)
            .map(|i| weights[i] * slopes[(row * count + i) * 2])
            .sum();
        for (i, &a) in weights[..count].iter().enumerate() {
            let at = (row * count + i) * 2;
            let (z, r) = (scores[at], scores[at + 1]);
            let slope = a * (slopes[at] - mean) * r;
            (slopes[at], slopes[at + 1]) = (slope, p.bend(slope, r, z));
        }
    }
}

pub(super) fn backward_sigmoid<T: Real>(
    p: &dyn Any,
    [scores, weights, slopes, ..]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let (scores, weights) = (scores.read(), weights.read());
    let slopes = slopes.write().chunks_exact_mut(2);
    for ((slopes, score), &a) in slopes.zip(scores.chunks(2)).zip(weights) {
        let (z, r) = (score[0], score[1]);
        let slope = a * (T::one() - a) * slopes[0] * r;
        (slopes[0], slopes[1]) = (slope, p.bend(slope, r, z));
    }
}

pub(super) fn backward_log_sum<T: Real>(
    p: &dyn Any,
    [scores, weights, slopes, d_lse, ..]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let (scores, weights, d_lse) = (scores.read(), weights.read(), d_lse.read());
    let slopes = slopes.write().chunks_exact_mut(2);
    for (i, (slopes, score)) in slopes.zip(scores.chunks(2)).enumerate() {
        let (z, r) = (score[0], score[1]);
        let slope = weights[i] * d_lse[i / p.count as usize] * r;
        slopes[0] += slope;
        slopes[1] += p.bend(slope, r, z);
    }
}

pub(super) fn backward<T: Real>(
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
    ]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let (history, query, gain) = (history.read(), query.read(), gain.read());
    let (weights, slopes, d_mixed) = (weights.read(), slopes.read(), d_mixed.read());
    let d_history = d_history.write();
    let (dim, heads, count) = (p.dim as usize, p.heads as usize, p.count as usize);
    let query = &query[p.query_row as usize * dim..][..dim];
    let mut update = |at: usize, how, change| match how {
        SKIP => {}
        ADD => d_history[at] += change,
        _ => d_history[at] = change,
    };
    for row in 0..p.rows as usize {
        for c in 0..dim {
            let g = d_mixed[row * dim + c];
            let own = row * heads + c / p.head_dim();
            for i in 0..count {
                let (key, value) = (p.key(i, row) + c, p.value(i, row) + c);
                let slope = |head_row: usize| (head_row * count + i) * 2;
                let w = weights[own * p.columns as usize + i] - p.mean_weight();
                let d_value = w * g;
                // All heads pull at the length of the whole key.
                let pull: T = (row * heads..(row + 1) * heads)
                    .map(|head_row| slopes[slope(head_row) + 1])
                    .sum();
                let d_key = slopes[slope(own)] * query[c] * gain[c] - pull * history[key];
                if key == value {
                    update(key, p.value_update[i], d_value + d_key);
                } else {
                    update(value, p.value_update[i], d_value);
                    update(key, p.key_update[i], d_key);
                }
            }
        }
    }
}

pub(super) fn backward_query<T: Real>(p: &dyn Any, [history, slopes, partial, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (history, slopes, partial) = (history.read(), slopes.read(), partial.write());
    let (rows, count, chunk) = (p.rows as usize, p.count as usize, p.chunk as usize);
    for (block, sums) in partial.chunks_exact_mut(p.dim as usize).enumerate() {
        sums.fill(T::zero());
        for i in 0..count {
            for row in block * chunk..((block + 1) * chunk).min(rows) {
                for (c, sum) in sums.iter_mut().enumerate() {
                    let head_row = row * p.heads as usize + c / p.head_dim();
                    *sum += slopes[(head_row * count + i) * 2] * history[p.key(i, row) + c];
                }
            }
        }
    }
}

pub(super) fn backward_query_sum<T: Real>(
    p: &dyn Any,
    [partial, query, gain, d_query, d_gain, ..]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let (partial, query, gain) = (partial.read(), query.read(), gain.read());
    let (d_query, d_gain) = (d_query.write(), d_gain.write());
    let dim = p.dim as usize;
    if p.add_query == 0 {
        d_query.fill(T::zero());
    }
    if p.add_gain == 0 {
        d_gain.fill(T::zero());
    }
    for c in 0..dim {
        let du: T = partial.iter().skip(c).step_by(dim).copied().sum();
        let asked = p.query_row as usize * dim + c;
        d_query[asked] += gain[c] * du;
        d_gain[c] += query[asked] * du;
    }
}
