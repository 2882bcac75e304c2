//! Twins of `shaders/scaled_add.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::scaled_add::Params;

pub(super) fn forward<T: Real>(_: &dyn Any, [h, o, scale, x, ..]: CpuArgs<'_, T>) {
    let (h, o, scale) = (h.read(), o.read(), scale.read());
    for (i, x) in x.write().iter_mut().enumerate() {
        *x = h[i] + scale[0] * o[i];
    }
}

pub(super) fn backward_h<T: Real>(p: &dyn Any, [dx, dh, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    for (dh, &dx) in dh.write().iter_mut().zip(dx.read()) {
        *dh = if p.add == 0 { dx } else { *dh + dx };
    }
}

pub(super) fn backward_o<T: Real>(p: &dyn Any, [dx, scale, d_o, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let scale = scale.read()[0];
    for (d_o, &dx) in d_o.write().iter_mut().zip(dx.read()) {
        let old = if p.add == 0 { T::zero() } else { *d_o };
        *d_o = old + scale * dx;
    }
}

pub(super) fn backward_scale<T: Real>(p: &dyn Any, [dx, o, partial, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (dx, o) = (dx.read(), o.read());
    for (part, sum) in partial.write().iter_mut().enumerate() {
        *sum = (part..p.len as usize)
            .step_by(p.count as usize)
            .map(|i| dx[i] * o[i])
            .sum();
    }
}
