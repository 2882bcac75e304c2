//! Twins of `shaders/mhc_gates.wgsl`. The functions of a single row serve the fast twins as well.
//!
//! The sums of the iterations stay in a list of the caller; the scratch that the shader keeps them in is not used.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::mhc_gates::{LIMIT, MAX_STREAMS, Params};

/// The largest matrix, row-major.
const TILE: usize = (MAX_STREAMS * MAX_STREAMS) as usize;

fn limited<T: Real>(raw: T) -> T {
    raw.min(T::of(LIMIT)).max(T::of(-LIMIT))
}

/// `a` of the closed form, from the raw matrix.
fn share<T: Real>(raw: &[T]) -> T {
    let [a, b, c, d] = [0, 1, 2, 3].map(|k| limited(raw[k]));
    (T::of(0.5) * (a + d - b - c)).sigmoid()
}

/// `exp(L - max L)` of the raw matrix.
fn exponentials<T: Real>(raw: &[T]) -> [T; TILE] {
    let most = raw.iter().fold(T::of(-LIMIT), |m, &v| m.max(limited(v)));
    let mut tile = [T::zero(); TILE];
    for (to, &v) in tile.iter_mut().zip(raw) {
        *to = (limited(v) - most).exp();
    }
    tile
}

/// Where the elements of a column, or of a row, lie.
fn line(n: usize, number: usize, column: bool) -> impl Iterator<Item = usize> {
    let (first, step) = if column { (number, n) } else { (number * n, 1) };
    (0..n).map(move |k| first + k * step)
}

/// Divide each column, or each row, by its sum, and remember the sums.
fn divide<T: Real>(tile: &mut [T], n: usize, columns: bool, sums: &mut Vec<T>) {
    for number in 0..n {
        let sum: T = line(n, number, columns).map(|at| tile[at]).sum();
        for at in line(n, number, columns) {
            tile[at] /= sum;
        }
        sums.push(sum);
    }
}

/// The iterations; leaves all sums, from the first operation to the last.
fn sinkhorn<T: Real>(p: &Params, tile: &mut [T], sums: &mut Vec<T>) {
    sums.clear();
    for _ in 0..p.iterations {
        divide(tile, p.streams as usize, true, sums);
        divide(tile, p.streams as usize, false, sums);
    }
}

/// From `tile` after a division, and its gradient, to both before it.
fn undo<T: Real>(tile: &mut [T], slope: &mut [T], n: usize, columns: bool, sums: &[T]) {
    for (number, &sum) in sums.iter().enumerate() {
        let along: T = line(n, number, columns)
            .map(|at| slope[at] * tile[at])
            .sum();
        for at in line(n, number, columns) {
            slope[at] = (slope[at] - along) / sum;
            tile[at] *= sum;
        }
    }
}

/// Gates of one row.
pub(super) fn forward_row<T: Real>(
    p: &Params,
    raw: &[T],
    [pre, post, mix]: [&mut [T]; 3],
    sums: &mut Vec<T>,
) {
    let n = p.streams as usize;
    for j in 0..n {
        pre[j] = raw[j].sigmoid();
        post[j] = T::of(2.0) * raw[n + j].sigmoid();
    }
    let raw = &raw[2 * n..];
    if p.iterations == 0 {
        let a = share(raw);
        mix.copy_from_slice(&[a, T::one() - a, T::one() - a, a]);
        return;
    }
    let mut tile = exponentials(raw);
    sinkhorn(p, &mut tile, sums);
    mix.copy_from_slice(&tile[..n * n]);
}

/// Gradient of one row of `raw`, stored to `draw`.
pub(super) fn backward_row<T: Real>(
    p: &Params,
    raw: &[T],
    [dpre, dpost, dmix]: [&[T]; 3],
    draw: &mut [T],
    sums: &mut Vec<T>,
) {
    let n = p.streams as usize;
    draw.fill(T::zero());
    for j in 0..n {
        if p.has_pre != 0 {
            let opening = raw[j].sigmoid();
            draw[j] = dpre[j] * opening * (T::one() - opening);
        }
        if p.has_post != 0 {
            let half = raw[n + j].sigmoid();
            draw[n + j] = dpost[j] * T::of(2.0) * half * (T::one() - half);
        }
    }
    if p.has_mix == 0 {
        return;
    }
    let (raw, draw) = (&raw[2 * n..], &mut draw[2 * n..]);
    if p.iterations == 0 {
        let a = share(raw);
        let s = T::of(0.5) * a * (T::one() - a) * (dmix[0] + dmix[3] - dmix[1] - dmix[2]);
        draw.copy_from_slice(&[s, -s, -s, s]);
    } else {
        let start = exponentials(raw);
        let (mut tile, mut slope) = (start, [T::zero(); TILE]);
        sinkhorn(p, &mut tile, sums);
        slope[..n * n].copy_from_slice(dmix);
        let mut operations = sums.chunks_exact(n).rev();
        while let (Some(rows), Some(columns)) = (operations.next(), operations.next()) {
            undo(&mut tile, &mut slope, n, false, rows);
            undo(&mut tile, &mut slope, n, true, columns);
        }
        for (draw, (slope, start)) in draw.iter_mut().zip(slope.iter().zip(start)) {
            *draw = *slope * start;
        }
    }
    for (draw, raw) in draw.iter_mut().zip(raw) {
        if raw.abs() > T::of(LIMIT) {
            *draw = T::zero();
        }
    }
}

pub(super) fn forward<T: Real>(p: &dyn Any, [raw, pre, post, mix, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let n = p.streams as usize;
    let gates = pre
        .write()
        .chunks_exact_mut(n)
        .zip(post.write().chunks_exact_mut(n));
    let rows = raw.read().chunks_exact(n * (n + 2)).zip(gates);
    let mut sums = Vec::new();
    for ((raw, (pre, post)), mix) in rows.zip(mix.write().chunks_exact_mut(n * n)) {
        forward_row(p, raw, [pre, post, mix], &mut sums);
    }
}

pub(super) fn backward<T: Real>(
    p: &dyn Any,
    [raw, dpre, dpost, dmix, _, draw, ..]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let (dpre, dpost, dmix) = (dpre.read(), dpost.read(), dmix.read());
    let n = p.streams as usize;
    let width = n * (n + 2);
    let (mut fresh, mut sums) = (vec![T::zero(); width], Vec::new());
    let rows = raw.read().chunks_exact(width);
    for (row, (raw, draw)) in rows.zip(draw.write().chunks_exact_mut(width)).enumerate() {
        let grads = [
            &dpre[row * n..][..n],
            &dpost[row * n..][..n],
            &dmix[row * n * n..][..n * n],
        ];
        backward_row(p, raw, grads, &mut fresh, &mut sums);
        for (draw, &fresh) in draw.iter_mut().zip(&fresh) {
            *draw = if p.add == 0 { fresh } else { *draw + fresh };
        }
    }
}
