//! Twin of `shaders/adamw.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::optim::adamw::Params;
use crate::optim::{STATUS_SCALE, STATUS_STOPPED};

pub(super) fn update<T: Real>(
    params_: &dyn Any,
    [scalars, status, dp, p, m, v, ..]: CpuArgs<'_, T>,
) {
    let c: &Params = params(params_);
    let (scalars, status, dp) = (scalars.read(), status.read(), dp.read());
    let (p, m, v) = (p.write(), m.write(), v.write());
    if status[STATUS_STOPPED] != T::zero() {
        return;
    }
    let rate = scalars[0] * T::of(c.lr_mult);
    for i in 0..c.len as usize {
        let g = status[STATUS_SCALE] * dp[i];
        m[i] = T::of(c.beta1) * m[i] + T::of(c.rest1) * g;
        v[i] = T::of(c.beta2) * v[i] + T::of(c.rest2) * g * g;
        let decayed = p[i] - rate * T::of(c.decay) * p[i];
        let (m_hat, v_hat) = (m[i] / scalars[1], v[i] / scalars[2]);
        p[i] = decayed - rate * m_hat / (v_hat.sqrt() + T::of(c.eps));
    }
}
