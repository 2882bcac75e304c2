//! Twins of `shaders/stream_mix.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::stream_mix::Params;

pub(super) fn forward<T: Real>(p: &dyn Any, [x, weight, out, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (x, weight, out) = (x.read(), weight.read(), out.write());
    let (dim, from, to) = (p.dim as usize, p.inputs as usize, p.outputs as usize);
    for row in 0..p.rows as usize {
        let weight = &weight[row * p.stride_row as usize..];
        let x = &x[row * from * dim..][..from * dim];
        let out = &mut out[row * to * dim..][..to * dim];
        for (j, out) in out.chunks_exact_mut(dim).enumerate() {
            if p.add == 0 {
                out.fill(T::zero());
            }
            for (i, x) in x.chunks_exact(dim).enumerate() {
                let weight = weight[i * p.stride_in as usize + j * p.stride_out as usize];
                for (out, &x) in out.iter_mut().zip(x) {
                    *out += weight * x;
                }
            }
        }
    }
}

pub(super) fn backward_weights<T: Real>(p: &dyn Any, [x, dout, dweight, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (x, dout, dweight) = (x.read(), dout.read(), dweight.write());
    let (dim, from, to) = (p.dim as usize, p.inputs as usize, p.outputs as usize);
    for row in 0..p.rows as usize {
        let x = &x[row * from * dim..][..from * dim];
        let dout = &dout[row * to * dim..][..to * dim];
        for (i, x) in x.chunks_exact(dim).enumerate() {
            for (j, dout) in dout.chunks_exact(dim).enumerate() {
                let sum: T = x.iter().zip(dout).map(|(&x, &dout)| x * dout).sum();
                let own = row * p.stride_row as usize
                    + i * p.stride_in as usize
                    + j * p.stride_out as usize;
                dweight[own] = if p.add == 0 { sum } else { dweight[own] + sum };
            }
        }
    }
}
