//! Twins of `shaders/slot_add.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::slot_add::Params;

pub(super) fn forward<T: Real>(p: &dyn Any, [y, history, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (y, history) = (y.read(), history.write());
    let (old, new) = (
        (p.slot_in * p.stride) as usize,
        (p.slot_out * p.stride) as usize,
    );
    for i in 0..p.len as usize {
        history[new + i] = history[old + i] + y[i];
    }
}

pub(super) fn backward<T: Real>(p: &dyn Any, [d_history, dy, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (d_history, dy) = (d_history.write(), dy.write());
    let (old, new) = (
        (p.slot_in * p.stride) as usize,
        (p.slot_out * p.stride) as usize,
    );
    for i in 0..p.len as usize {
        let d = d_history[new + i];
        d_history[old + i] = if p.old_add == 0 {
            d
        } else {
            d_history[old + i] + d
        };
        dy[i] = if p.y_add == 0 { d } else { dy[i] + d };
    }
}
