//! Fast twins of `shaders/stream_mix.wgsl`: rows in parallel.

use std::any::Any;

use super::math::{dot, wide};
use super::threads::{for_each_part, rows_per_piece};
use crate::cpu::{CpuArgs, params};
use crate::ops::stream_mix::Params;

wide! {
    fn mix_rows(p: &Params, x: &[f32], weight: &[f32], out: &mut [f32]) {
        let dim = p.dim as usize;
        let rows = x.chunks_exact(p.inputs as usize * dim).zip(out.chunks_exact_mut(p.outputs as usize * dim));
        for (row, (x, out)) in rows.enumerate() {
            let weight = &weight[row * p.stride_row as usize..];
            for (j, out) in out.chunks_exact_mut(dim).enumerate() {
                let mut add = p.add != 0;
                for (i, x) in x.chunks_exact(dim).enumerate() {
                    let weight = weight[i * p.stride_in as usize + j * p.stride_out as usize];
                    if add {
                        for (out, x) in out.iter_mut().zip(x) {
                            *out += weight * x;
                        }
                    } else {
                        for (out, x) in out.iter_mut().zip(x) {
                            *out = weight * x;
                        }
                    }
                    add = true;
                }
            }
        }
    }
}

pub(super) fn forward(p: &dyn Any, [x, weight, out, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (x, weight) = (x.read(), weight.read());
    let (from, to) = ((p.inputs * p.dim) as usize, (p.outputs * p.dim) as usize);
    let rows = rows_per_piece(2 * from * p.outputs as usize);
    for_each_part(out.write(), rows * to, |piece, out| {
        let first = piece * rows;
        let x = &x[first * from..][..out.len() / to * from];
        mix_rows(p, x, &weight[first * p.stride_row as usize..], out);
    });
}

wide! {
    fn weigh_rows(p: &Params, x: &[f32], dout: &[f32], dweight: &mut [f32]) {
        let (dim, from, to) = (p.dim as usize, p.inputs as usize, p.outputs as usize);
        let rows = x.chunks_exact(from * dim).zip(dout.chunks_exact(to * dim));
        for ((x, dout), dweight) in rows.zip(dweight.chunks_exact_mut(from * to)) {
            for (i, x) in x.chunks_exact(dim).enumerate() {
                for (j, dout) in dout.chunks_exact(dim).enumerate() {
                    let own = &mut dweight[i * p.stride_in as usize + j * p.stride_out as usize];
                    let old = if p.add == 0 { 0.0 } else { *own };
                    *own = old + dot(x, dout);
                }
            }
        }
    }
}

pub(super) fn backward_weights(p: &dyn Any, [x, dout, dweight, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (x, dout) = (x.read(), dout.read());
    let (from, to) = ((p.inputs * p.dim) as usize, (p.outputs * p.dim) as usize);
    let weights = (p.inputs * p.outputs) as usize;
    let rows = rows_per_piece(2 * from * p.outputs as usize);
    for_each_part(dweight.write(), rows * weights, |piece, dweight| {
        let (first, count) = (piece * rows, dweight.len() / weights);
        let (x, dout) = (&x[first * from..], &dout[first * to..]);
        weigh_rows(p, &x[..count * from], &dout[..count * to], dweight);
    });
}
