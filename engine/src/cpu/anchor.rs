//! Twins of `shaders/anchor.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::anchor::Params;

pub(super) fn copy<T: Real>(p: &dyn Any, [x, y, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let len = 4 * p.len as usize;
    y.write()[..len].copy_from_slice(&x.read()[..len]);
}

pub(super) fn multiply_add<T: Real>(p: &dyn Any, [x, y, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (half, quarter) = (T::of(0.5), T::of(0.25));
    let len = 4 * p.len as usize;
    for (y, &x) in y.write().iter_mut().zip(x.read()).take(len) {
        let chain = |k: u32| (0..p.rounds).fold(T::of(k.into()) * x, |c, _| c * half + quarter * x);
        *y = ((chain(1) + chain(2)) + (chain(3) + chain(4)))
            + ((chain(5) + chain(6)) + (chain(7) + chain(8)));
    }
}
