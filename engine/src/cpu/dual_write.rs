//! Twins of `shaders/dual_write.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::dual_write::{Params, SKIP};

pub(super) fn forward<T: Real>(p: &dyn Any, [gates, y, history, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (gates, y, history) = (gates.read(), y.read(), history.write());
    let [old0, old1, new0, new1] = [p.old0, p.old1, p.new0, p.new1].map(|start| start as usize);
    for at in 0..(p.rows * p.dim) as usize {
        let gates = &gates[at / p.dim as usize * 5..][..5];
        let (rho, beta) = (gates[2], [gates[3], gates[4]]);
        let mut carried = [T::zero(); 2];
        if p.has_old != 0 {
            let old = [history[old0 + at], history[old1 + at]];
            carried = [0, 1].map(|j| rho * old[j] + (T::one() - rho) * old[1 - j]);
        }
        history[new0 + at] = carried[0] + beta[0] * y[at];
        history[new1 + at] = carried[1] + beta[1] * y[at];
    }
}

/// Gradients of both new partials at an element.
fn upstream<T: Real>(p: &Params, history_grad: &[T], at: usize) -> [T; 2] {
    [(p.has_grad0, p.new0), (p.has_grad1, p.new1)].map(|(has, start)| {
        if has == 0 {
            T::zero()
        } else {
            history_grad[start as usize + at]
        }
    })
}

fn put<T: Real>(how: u32, to: &mut T, value: T) {
    match how {
        0 => *to = value,
        SKIP => {}
        _ => *to += value,
    }
}

pub(super) fn backward<T: Real>(p: &dyn Any, [gates, history_grad, dy, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (gates, history_grad, dy) = (gates.read(), history_grad.write(), dy.write());
    for at in 0..(p.rows * p.dim) as usize {
        let gates = &gates[at / p.dim as usize * 5..][..5];
        let (rho, beta) = (gates[2], [gates[3], gates[4]]);
        let dnew = upstream(p, history_grad, at);
        if p.put_y != SKIP {
            put(p.put_y, &mut dy[at], beta[0] * dnew[0] + beta[1] * dnew[1]);
        }
        if p.has_old != 0 {
            let dold = [0, 1].map(|j| rho * dnew[j] + (T::one() - rho) * dnew[1 - j]);
            put(p.put_old0, &mut history_grad[p.old0 as usize + at], dold[0]);
            put(p.put_old1, &mut history_grad[p.old1 as usize + at], dold[1]);
        }
    }
}

pub(super) fn backward_gates<T: Real>(
    p: &dyn Any,
    [history, y, history_grad, dgates, ..]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let (history, y, history_grad) = (history.read(), y.read(), history_grad.read());
    let dim = p.dim as usize;
    for (row, dgates) in dgates.write().chunks_exact_mut(5).enumerate() {
        let mut sums = [T::zero(); 5];
        for at in row * dim..(row + 1) * dim {
            let dnew = upstream(p, history_grad, at);
            if p.has_old != 0 {
                let apart = history[p.old0 as usize + at] - history[p.old1 as usize + at];
                sums[2] += (dnew[0] - dnew[1]) * apart;
            }
            sums[3] += dnew[0] * y[at];
            sums[4] += dnew[1] * y[at];
        }
        for (to, sum) in dgates.iter_mut().zip(sums) {
            put(p.put_gates, to, sum);
        }
    }
}
