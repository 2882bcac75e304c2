//! Twins of `shaders/muon.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::optim::muon::Params;
use crate::optim::{STATUS_SCALE, STATUS_STOPPED};

/// Call `body(element of the parameter, its place in the stack)` for all elements.
fn lying(p: &Params, mut body: impl FnMut(usize, usize)) {
    let (rows, cols) = (p.rows as usize, p.cols as usize);
    for matrix in 0..p.count as usize {
        let from = matrix * rows * cols;
        let to = (p.first as usize + matrix) * rows * cols;
        for row in 0..rows {
            for col in 0..cols {
                let place = if rows > cols {
                    col * rows + row
                } else {
                    row * cols + col
                };
                body(from + row * cols + col, to + place);
            }
        }
    }
}

pub(super) fn momentum<T: Real>(p: &dyn Any, [status, dp, m, u, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (status, dp, m, u) = (status.read(), dp.read(), m.write(), u.write());
    if status[STATUS_STOPPED] != T::zero() {
        return;
    }
    let (scale, momentum) = (status[STATUS_SCALE], T::of(p.momentum));
    lying(p, |i, place| {
        let g = scale * dp[i];
        m[i] = momentum * m[i] + g;
        u[place] = momentum * m[i] + g;
    });
}

pub(super) fn apply<T: Real>(p_: &dyn Any, [status, scalars, o, p, ..]: CpuArgs<'_, T>) {
    let c: &Params = params(p_);
    let (status, scalars, o, p) = (status.read(), scalars.read(), o.read(), p.write());
    if status[STATUS_STOPPED] != T::zero() {
        return;
    }
    let (decay, rate) = (scalars[0] * T::of(c.decay), scalars[0] * T::of(c.rate));
    lying(c, |i, place| p[i] = p[i] - decay * p[i] - rate * o[place]);
}
