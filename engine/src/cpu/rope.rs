//! Twin of `shaders/rope.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::rope::Params;

pub(super) fn rotate<T: Real>(p: &dyn Any, [x, cosines, sines, y, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (x, cosines, sines, y) = (x.read(), cosines.read(), sines.read(), y.write());
    let (heads, seq_len, half) = (p.heads as usize, p.seq_len as usize, p.half_dim as usize);
    for row in 0..p.rows as usize {
        let position = row / heads % seq_len;
        for channel in 0..half {
            let (low, high) = (row * 2 * half + channel, row * 2 * half + half + channel);
            let cosine = cosines[position * half + channel];
            let sine = sines[position * half + channel] * T::of(p.sign);
            let old = |y: T| if p.add == 0 { T::zero() } else { y };
            y[low] = old(y[low]) + x[low] * cosine - x[high] * sine;
            y[high] = old(y[high]) + x[high] * cosine + x[low] * sine;
        }
    }
}
