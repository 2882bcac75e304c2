//! Fast twins of `shaders/inverse_rms.wgsl`: rows in parallel.

use std::any::Any;

use super::math::{dot, wide};
use super::threads::{for_each_part, rows_per_piece};
use crate::cpu::{CpuArgs, params};
use crate::ops::inverse_rms::Params;

wide! {
    fn measure(x: &[f32], dim: usize, eps: f32, r: &mut [f32]) {
        for (x, r) in x.chunks_exact(dim).zip(r) {
            *r = 1.0 / (dot(x, x) / dim as f32 + eps).sqrt();
        }
    }
}

pub(super) fn forward(p: &dyn Any, [x, r, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (x, dim) = (x.read(), p.dim as usize);
    let rows = rows_per_piece(2 * dim);
    for_each_part(r.write(), rows, |piece, r| {
        let x = &x[piece * rows * dim..][..r.len() * dim];
        measure(x, dim, p.eps as f32, r);
    });
}

wide! {
    fn pull_back(x: &[f32], dim: usize, r: &[f32], dr: &[f32], dx: &mut [f32], add: bool) {
        let rows = x.chunks_exact(dim).zip(dx.chunks_exact_mut(dim));
        for ((x, dx), (r, dr)) in rows.zip(r.iter().zip(dr)) {
            let pull = r * r * r * dr / dim as f32;
            if add {
                for (dx, x) in dx.iter_mut().zip(x) {
                    *dx -= x * pull;
                }
            } else {
                for (dx, x) in dx.iter_mut().zip(x) {
                    *dx = -(x * pull);
                }
            }
        }
    }
}

pub(super) fn backward(p: &dyn Any, [x, r, dr, dx, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (x, r, dr, dim) = (x.read(), r.read(), dr.read(), p.dim as usize);
    let rows = rows_per_piece(3 * dim);
    for_each_part(dx.write(), rows * dim, |piece, dx| {
        let first = piece * rows;
        let x = &x[first * dim..][..dx.len()];
        pull_back(x, dim, &r[first..], &dr[first..], dx, p.add != 0);
    });
}
