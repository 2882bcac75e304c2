//! Twins of `shaders/swiglu.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::swiglu::Params;

pub(super) fn forward<T: Real>(p: &dyn Any, [gate, up, y, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (gate, up, y) = (gate.read(), up.read(), y.write());
    for i in 0..p.len as usize {
        y[i] = gate[i] * gate[i].sigmoid() * up[i];
    }
}

pub(super) fn backward<T: Real>(p: &dyn Any, [gate, up, dy, d_gate, d_up, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (gate, up, dy) = (gate.read(), up.read(), dy.read());
    let (d_gate, d_up) = (d_gate.write(), d_up.write());
    let old = |add, value| if add == 0 { T::zero() } else { value };
    for i in 0..p.len as usize {
        let s = gate[i].sigmoid();
        let slope = s * (T::one() + gate[i] * (T::one() - s));
        d_gate[i] = old(p.add_gate, d_gate[i]) + dy[i] * up[i] * slope;
        d_up[i] = old(p.add_up, d_up[i]) + dy[i] * gate[i] * s;
    }
}
