//! Twin of `shaders/replace.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::replace::Params;

pub(super) fn apply<T: Real>(p: &dyn Any, [on, by, y, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    if on.read()[0] == T::zero() {
        return;
    }
    let (by, columns, first) = (by.read(), p.columns as usize, p.first as usize);
    let rows = y.write().chunks_exact_mut(p.width as usize);
    for (row, y) in rows.enumerate().take(p.rows as usize) {
        let start = row * p.stride as usize;
        y[first..first + columns].copy_from_slice(&by[start..start + columns]);
    }
}
