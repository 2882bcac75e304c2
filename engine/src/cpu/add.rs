//! Twin of `shaders/add.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::add::Params;

pub(super) fn forward<T: Real>(p: &dyn Any, [a, b, y, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (a, b, y) = (a.read(), b.read(), y.write());
    for i in 0..p.len as usize {
        y[i] = a[i] + b[i];
    }
}
