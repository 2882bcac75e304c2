//! Twin of `shaders/column_sum.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::column_sum::Params;

pub(super) fn forward<T: Real>(p: &dyn Any, [partial, out, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (partial, out) = (partial.read(), out.write());
    for (i, out) in out.iter_mut().enumerate().take(p.dim as usize) {
        let old = if p.add == 0 { T::zero() } else { *out };
        *out = (0..p.rows as usize).fold(old, |sum, row| sum + partial[row * p.dim as usize + i]);
    }
}
