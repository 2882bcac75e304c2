//! Twins of `shaders/softmax.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::softmax::Params;

pub(super) fn forward<T: Real>(_: &dyn Any, [z, a, ..]: CpuArgs<'_, T>) {
    let (z, a) = (z.read(), a.write());
    let top = z.iter().copied().fold(T::neg_infinity(), T::max);
    for (a, &z) in a.iter_mut().zip(z) {
        *a = (z - top).exp();
    }
    let total: T = a.iter().copied().sum();
    a.iter_mut().for_each(|a| *a /= total);
}

pub(super) fn backward<T: Real>(p: &dyn Any, [a, da, dz, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (a, da, dz) = (a.read(), da.read(), dz.write());
    let mean: T = a.iter().zip(da).map(|(&a, &da)| a * da).sum();
    for ((dz, &a), &da) in dz.iter_mut().zip(a).zip(da) {
        let old = if p.add == 0 { T::zero() } else { *dz };
        *dz = old + a * (da - mean);
    }
}
