//! Twins of `shaders/embedding.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::embedding::Params;

/// Where row `id` of the table starts. Ids that are too large mean the last row.
fn at(p: &Params, id: u32) -> usize {
    (id.min(p.vocab - 1) * p.dim) as usize
}

pub(super) fn forward<T: Real>(p: &dyn Any, [ids, table, y, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (ids, table, dim) = (ids.ints(), table.read(), p.dim as usize);
    for (row, y) in y.write().chunks_exact_mut(dim).enumerate() {
        y.copy_from_slice(&table[at(p, ids[row])..][..dim]);
    }
}

pub(super) fn backward_links<T: Real>(p: &dyn Any, [ids, next, first, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (ids, next, first) = (ids.ints(), next.write_ints(), first.write_ints());
    let rows = p.rows as usize;
    for row in 0..rows {
        let same = |&other: &usize| at(p, ids[other]) == at(p, ids[row]);
        next[row] = (row + 1..rows).find(same).unwrap_or(rows) as u32;
        first[row] = u32::from(!(0..row).any(|other| same(&other)));
    }
}

pub(super) fn backward_clear<T: Real>(_: &dyn Any, [d_table, ..]: CpuArgs<'_, T>) {
    d_table.write().fill(T::zero());
}

pub(super) fn backward<T: Real>(p: &dyn Any, [ids, next, first, dy, d_table, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (ids, next, first) = (ids.ints(), next.ints(), first.ints());
    let (dy, d_table, dim) = (dy.read(), d_table.write(), p.dim as usize);
    for row in (0..p.rows as usize).filter(|&row| first[row] == 1) {
        for i in 0..dim {
            let (mut sum, mut other) = (T::zero(), row);
            while other < p.rows as usize {
                sum += dy[other * dim + i];
                other = next[other] as usize;
            }
            d_table[at(p, ids[row]) + i] += sum;
        }
    }
}
