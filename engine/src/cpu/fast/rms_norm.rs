//! Fast twins of `shaders/rms_norm.wgsl`.

use std::any::Any;

use super::math::{dot, dot3, wide};
use super::threads::{for_each_pair, for_each_part, rows_per_piece};
use crate::cpu::{CpuArgs, params};
use crate::ops::rms_norm::Params;

wide! {
    fn normalise(x: &[f32], gain: &[f32], eps: f32, y: &mut [f32], r: &mut [f32]) {
        let dim = gain.len();
        let rows = x.chunks_exact(dim).zip(y.chunks_exact_mut(dim));
        for ((x, y), r) in rows.zip(r) {
            *r = 1.0 / (dot(x, x) / dim as f32 + eps).sqrt();
            for ((y, x), gain) in y.iter_mut().zip(x).zip(gain) {
                *y = x * *r * gain;
            }
        }
    }
}

pub(super) fn forward(p: &dyn Any, [x, gain, y, r, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (x, gain, y, r) = (x.read(), gain.read(), y.write(), r.write());
    let (dim, eps) = (p.dim as usize, p.eps as f32);
    let rows = rows_per_piece(4 * dim);
    for_each_pair((y, rows * dim), (r, rows), |piece, y, r| {
        let x = &x[piece * rows * dim..][..y.len()];
        normalise(x, gain, eps, y, r);
    });
}

wide! {
    fn pull_back(x: &[f32], gain: &[f32], r: &[f32], dy: &[f32], dx: &mut [f32], add: bool) {
        let dim = gain.len();
        let rows = x.chunks_exact(dim).zip(dy.chunks_exact(dim)).zip(dx.chunks_exact_mut(dim));
        for (((x, dy), dx), &r) in rows.zip(r) {
            let pull = dot3(dy, gain, x) * r * r / dim as f32;
            let terms = dx.iter_mut().zip(x).zip(dy).zip(gain);
            if add {
                for (((dx, x), dy), gain) in terms {
                    *dx += r * (dy * gain - x * pull);
                }
            } else {
                for (((dx, x), dy), gain) in terms {
                    *dx = r * (dy * gain - x * pull);
                }
            }
        }
    }
}

pub(super) fn backward(p: &dyn Any, [x, gain, r, dy, dx, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (x, gain, r, dy, dx) = (x.read(), gain.read(), r.read(), dy.read(), dx.write());
    let dim = p.dim as usize;
    let rows = rows_per_piece(6 * dim);
    for_each_part(dx, rows * dim, |piece, dx| {
        let at = piece * rows * dim;
        let (x, dy) = (&x[at..][..dx.len()], &dy[at..][..dx.len()]);
        pull_back(x, gain, &r[piece * rows..], dy, dx, p.add != 0);
    });
}

wide! {
    /// `sums[i] = sum over rows of dy * x * r`.
    fn sum_rows(x: &[f32], r: &[f32], dy: &[f32], sums: &mut [f32]) {
        let dim = sums.len();
        sums.fill(0.0);
        for ((x, dy), r) in x.chunks_exact(dim).zip(dy.chunks_exact(dim)).zip(r) {
            for ((sum, x), dy) in sums.iter_mut().zip(x).zip(dy) {
                *sum += dy * x * r;
            }
        }
    }
}

pub(super) fn backward_gain(p: &dyn Any, [x, r, dy, partial, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (x, r, dy, partial) = (x.read(), r.read(), dy.read(), partial.write());
    let (rows, dim, chunk) = (p.rows as usize, p.dim as usize, p.chunk as usize);
    let blocks = rows_per_piece(3 * dim * chunk);
    for_each_part(partial, blocks * dim, |piece, partial| {
        for (block, sums) in partial.chunks_exact_mut(dim).enumerate() {
            let first = (piece * blocks + block) * chunk;
            let end = (first + chunk).min(rows);
            let part = first * dim..end * dim;
            sum_rows(&x[part.clone()], &r[first..end], &dy[part], sums);
        }
    });
}
