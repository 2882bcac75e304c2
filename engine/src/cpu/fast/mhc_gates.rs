//! Fast twins of `shaders/mhc_gates.wgsl`: rows in parallel.

use std::any::Any;

use super::threads::{for_each_part, for_each_triple, rows_per_piece};
use crate::cpu::mhc_gates::{backward_row, forward_row};
use crate::cpu::{CpuArgs, params};
use crate::ops::mhc_gates::Params;

/// Rows of a piece: each iteration goes over the matrix four times, and each division counts several operations.
fn piece_rows(p: &Params) -> usize {
    let matrix = (p.streams * p.streams) as usize;
    rows_per_piece(matrix * (10 + 8 * p.iterations as usize))
}

pub(super) fn forward(p: &dyn Any, [raw, pre, post, mix, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let n = p.streams as usize;
    let (raw, width, rows) = (raw.read(), n * (n + 2), piece_rows(p));
    for_each_triple(
        (pre.write(), rows * n),
        (post.write(), rows * n),
        (mix.write(), rows * n * n),
        |piece, pre, post, mix| {
            let mut sums = Vec::new();
            let raw = raw[piece * rows * width..].chunks_exact(width);
            let gates = pre.chunks_exact_mut(n).zip(post.chunks_exact_mut(n));
            for ((raw, (pre, post)), mix) in raw.zip(gates).zip(mix.chunks_exact_mut(n * n)) {
                forward_row(p, raw, [pre, post, mix], &mut sums);
            }
        },
    );
}

pub(super) fn backward(p: &dyn Any, [raw, dpre, dpost, dmix, _, draw, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (raw, dpre, dpost, dmix) = (raw.read(), dpre.read(), dpost.read(), dmix.read());
    let n = p.streams as usize;
    let (width, rows) = (n * (n + 2), piece_rows(p));
    for_each_part(draw.write(), rows * width, |piece, draw| {
        let (mut fresh, mut sums) = (vec![0.0; width], Vec::new());
        for (row, draw) in draw.chunks_exact_mut(width).enumerate() {
            let row = piece * rows + row;
            let grads = [
                &dpre[row * n..][..n],
                &dpost[row * n..][..n],
                &dmix[row * n * n..][..n * n],
            ];
            backward_row(
                p,
                &raw[row * width..][..width],
                grads,
                &mut fresh,
                &mut sums,
            );
            for (draw, fresh) in draw.iter_mut().zip(&fresh) {
                *draw = if p.add == 0 { *fresh } else { *draw + fresh };
            }
        }
    });
}
