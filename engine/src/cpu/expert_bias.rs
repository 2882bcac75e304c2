//! Twin of `shaders/expert_bias.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::optim::STATUS_STOPPED;
use crate::optim::expert_bias::Params;

pub(super) fn update<T: Real>(p: &dyn Any, [counts, status, bias, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (counts, status, bias) = (counts.read(), status.read(), bias.write());
    if status[STATUS_STOPPED] != T::zero() {
        return;
    }
    let counts = &counts[..p.experts as usize];
    let total: T = counts.iter().copied().sum();
    for (bias, &count) in bias.iter_mut().zip(counts) {
        let own = count * T::of(f64::from(p.experts));
        if own < total {
            *bias += T::of(p.rate);
        } else if own > total {
            *bias -= T::of(p.rate);
        }
    }
}
