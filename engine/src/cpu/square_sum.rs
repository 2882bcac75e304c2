//! Twins of `shaders/square_sum.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::optim::clip::SumParams;

pub(super) fn squares<T: Real>(p: &dyn Any, [input, partial, ..]: CpuArgs<'_, T>) {
    let p: &SumParams = params(p);
    let input = input.read();
    add(p, partial.write(), |i| {
        (input[i] * input[i], input[i].is_finite())
    });
}

pub(super) fn sums<T: Real>(p: &dyn Any, [input, partial, ..]: CpuArgs<'_, T>) {
    let p: &SumParams = params(p);
    let (sums, flags) = input.read().split_at(p.len as usize);
    add(p, partial.write(), |i| {
        (sums[i], sums[i].is_finite() && flags[i] == T::zero())
    });
}

/// Fill the partial sums of `term(i)`: a number, and whether it is finite.
fn add<T: Real>(p: &SumParams, partial: &mut [T], term: impl Fn(usize) -> (T, bool)) {
    let (sums, flags) = partial.split_at_mut(p.total as usize);
    let own = p.first as usize..(p.first + p.count) as usize;
    let both = sums[own.clone()].iter_mut().zip(&mut flags[own]);
    for (part, (sum, flag)) in both.enumerate() {
        (*sum, *flag) = (T::zero(), T::zero());
        for i in (part..p.len as usize).step_by(p.count as usize) {
            let (value, finite) = term(i);
            *sum += value;
            if !finite {
                *flag = T::one();
            }
        }
    }
}
