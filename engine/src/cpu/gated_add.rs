//! Twins of `shaders/gated_add.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::gated_add::Params;

pub(super) fn forward<T: Real>(p: &dyn Any, [gates, u, sum, y, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (gates, u, sum, y) = (gates.read(), u.read(), sum.read(), y.write());
    let dim = p.dim as usize;
    for row in 0..p.rows as usize {
        let gate = gates[row * p.experts as usize + p.expert as usize];
        for i in row * dim..(row + 1) * dim {
            let old = if p.first == 0 { sum[i] } else { T::zero() };
            y[i] = old + gate * u[i];
        }
    }
}

pub(super) fn backward_u<T: Real>(p: &dyn Any, [gates, dy, du, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (gates, dy, du) = (gates.read(), dy.read(), du.write());
    let dim = p.dim as usize;
    for row in 0..p.rows as usize {
        let gate = gates[row * p.experts as usize + p.expert as usize];
        for i in row * dim..(row + 1) * dim {
            let old = if p.add == 0 { T::zero() } else { du[i] };
            du[i] = old + gate * dy[i];
        }
    }
}

pub(super) fn backward_gates<T: Real>(p: &dyn Any, [u, dy, dgates, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (u, dy, dgates) = (u.read(), dy.read(), dgates.write());
    let dim = p.dim as usize;
    let rows = dgates.chunks_exact_mut(p.experts as usize);
    for (row, dgates) in rows.take(p.rows as usize).enumerate() {
        if p.add == 0 {
            dgates.fill(T::zero());
        }
        let at = row * dim..(row + 1) * dim;
        dgates[p.expert as usize] += u[at.clone()]
            .iter()
            .zip(&dy[at])
            .map(|(&u, &dy)| u * dy)
            .sum();
    }
}
