//! Twins of `shaders/grouped_matmul.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::expert_sort::NONE;
use crate::ops::grouped_matmul::Params;

/// Rows of `c` with the start of their expert's matrix; rows of no expert are left out.
fn rows<'a, T>(
    p: &'a Params,
    tile_expert: &'a [u32],
    c: &'a mut [T],
) -> impl Iterator<Item = (usize, usize, &'a mut [T])> {
    let rows = c.chunks_exact_mut(p.n as usize).enumerate();
    rows.filter_map(|(row, c)| {
        let expert = tile_expert[row / p.tile as usize];
        (expert != NONE).then(|| (row, expert as usize * p.stride as usize, c))
    })
}

/// `c (+)= value`.
fn store<T: Real>(c: &mut T, add: u32, value: T) {
    *c = if add == 0 { value } else { *c + value };
}

pub(super) fn nt<T: Real>(p: &dyn Any, [tile_expert, a, b, c, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (tile_expert, a, b, c) = (tile_expert.ints(), a.read(), b.read(), c.write());
    let k = p.k as usize;
    for (row, start, c) in rows(p, tile_expert, c) {
        for (j, c) in c.iter_mut().enumerate() {
            let sum = (0..k).map(|l| a[row * k + l] * b[start + j * k + l]).sum();
            store(c, p.add, sum);
        }
    }
}

pub(super) fn nn<T: Real>(p: &dyn Any, [tile_expert, a, b, c, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (tile_expert, a, b, c) = (tile_expert.ints(), a.read(), b.read(), c.write());
    let (n, k) = (p.n as usize, p.k as usize);
    for (row, start, c) in rows(p, tile_expert, c) {
        for (j, c) in c.iter_mut().enumerate() {
            let sum = (0..k).map(|l| a[row * k + l] * b[start + l * n + j]).sum();
            store(c, p.add, sum);
        }
    }
}

pub(super) fn tn<T: Real>(p: &dyn Any, [places, a, b, c, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (places, a, b, c) = (places.ints(), a.read(), b.read(), c.write());
    let (m, n) = (p.m as usize, p.n as usize);
    let (counts, offsets) = places.split_at(p.experts as usize);
    for (e, (&count, &first)) in counts.iter().zip(offsets).enumerate() {
        let rows = first as usize..(first + count) as usize;
        let c = &mut c[e * p.stride as usize..][..m * n];
        for (at, c) in c.iter_mut().enumerate() {
            let (i, j) = (at / n, at % n);
            let sum = rows
                .clone()
                .map(|row| a[row * m + i] * b[row * n + j])
                .sum();
            store(c, p.add, sum);
        }
    }
}
