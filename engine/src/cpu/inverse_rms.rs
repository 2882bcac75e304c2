//! Twins of `shaders/inverse_rms.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::inverse_rms::Params;

pub(super) fn forward<T: Real>(p: &dyn Any, [x, r, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let dim = p.dim as usize;
    for (x, r) in x.read().chunks_exact(dim).zip(r.write()) {
        let squares: T = x.iter().map(|&v| v * v).sum();
        *r = T::one() / (squares / T::of(dim as f64) + T::of(p.eps)).sqrt();
    }
}

pub(super) fn backward<T: Real>(p: &dyn Any, [x, r, dr, dx, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let dim = p.dim as usize;
    let rows = x.read().chunks_exact(dim).zip(r.read()).zip(dr.read());
    for (((x, &r), &dr), dx) in rows.zip(dx.write().chunks_exact_mut(dim)) {
        let pull = r * r * r * dr / T::of(dim as f64);
        for (dx, &x) in dx.iter_mut().zip(x) {
            let old = if p.add == 0 { T::zero() } else { *dx };
            *dx = old - x * pull;
        }
    }
}
