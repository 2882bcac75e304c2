//! Twin of `shaders/edit_weights.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::edit_weights::Params;

pub(super) fn apply<T: Real>(p: &dyn Any, [edit, weights, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (edit, n) = (edit.read(), p.columns as usize);
    let (map, rest) = edit.split_at(n * n);
    let (shift, flag) = rest.split_at(n);
    for row in weights.write().chunks_exact_mut(n).take(p.rows as usize) {
        let mapped = |c: usize| {
            let terms = row.iter().enumerate().map(|(a, &w)| w * map[a * n + c]);
            terms.fold(shift[c], |sum, term| sum + term)
        };
        let new: Vec<T> = (0..n).map(mapped).collect();
        let sum: T = new.iter().copied().sum();
        let scale = if flag[0] == T::zero() || sum <= T::zero() {
            T::one()
        } else {
            sum
        };
        row.iter_mut().zip(new).for_each(|(w, b)| *w = b / scale);
    }
}
