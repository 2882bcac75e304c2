//! Twins of `shaders/clip.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::optim::clip::Params;
use crate::optim::{
    RING_WIDTH, STATUS_BALANCE, STATUS_LOSS, STATUS_NORM, STATUS_RING, STATUS_SCALE,
    STATUS_STOPPED, STATUS_Z,
};

pub(super) fn record_loss<T: Real>(p: &dyn Any, [loss, status, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (loss, status) = (loss.read()[0], status.write());
    if !loss.is_finite() {
        status[STATUS_STOPPED] = T::one();
    }
    status[p.entry as usize] += loss;
}

pub(super) fn finish<T: Real>(p: &dyn Any, [partial, scalars, status, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (partial, scalars, status) = (partial.read(), scalars.read(), status.write());
    let (sums, flags) = partial.split_at(p.len as usize);
    let squares: T = sums.iter().copied().sum();
    let norm = squares.sqrt();
    let [loss, balance, z] = [STATUS_LOSS, STATUS_BALANCE, STATUS_Z].map(|at| status[at]);
    let well = status[STATUS_STOPPED] == T::zero()
        && [loss, balance, z].iter().all(|part| part.is_finite())
        && flags.iter().all(|&flag| flag == T::zero())
        && squares.is_finite();
    let mut scale = T::one();
    if p.clip > 0.0 {
        scale = scale.min(T::of(p.clip) / (norm + T::of(1e-6)));
    }
    let (well, scale) = if well {
        (T::one(), scale)
    } else {
        (T::zero(), T::zero())
    };
    let entry = STATUS_RING + RING_WIDTH * scalars[3].wide() as usize;
    status[entry..][..RING_WIDTH].copy_from_slice(&[loss, norm, well, balance, z]);
    status[STATUS_STOPPED] = T::one() - well;
    for part in [STATUS_LOSS, STATUS_BALANCE, STATUS_Z] {
        status[part] = T::zero();
    }
    status[STATUS_SCALE] = scale;
    status[STATUS_NORM] = norm;
}
