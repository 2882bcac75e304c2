//! Fast twins of `shaders/grouped_matmul.wgsl`: one product for each run of rows of one expert.

use std::any::Any;

use super::matmul::{Matrix, multiply_tn, product, rows_of_a_piece};
use super::threads::for_each_part;
use crate::cpu::{CpuArgs, params};
use crate::ops::expert_sort::NONE;
use crate::ops::grouped_matmul::Params;

/// `c (+)= a W_e` for every run of tiles with one expert; element `[l, j]` of a matrix is at `l * row + j * column`.
fn multiply(
    p: &Params,
    tile_expert: &[u32],
    a: &[f32],
    b: &[f32],
    c: &mut [f32],
    [row, column]: [usize; 2],
) {
    let (m, n, k, tile) = (p.m as usize, p.n as usize, p.k as usize, p.tile as usize);
    let piece_rows = rows_of_a_piece(m, n, k).next_multiple_of(tile);
    for_each_part(&mut c[..m * n], piece_rows * n, |piece, c| {
        let first = piece * piece_rows / tile;
        let tiles = &tile_expert[first..][..c.len() / n / tile];
        let mut at = first * tile;
        let mut rest = c;
        for run in tiles.chunk_by(|one, next| one == next) {
            let rows = run.len() * tile;
            let (c, behind) = rest.split_at_mut(rows * n);
            if run[0] != NONE {
                let a = Matrix {
                    data: &a[at * k..],
                    row: k,
                    column: 1,
                };
                let data = &b[run[0] as usize * p.stride as usize..];
                let b = Matrix { data, row, column };
                product([rows, n, k], c, p.add != 0, a, b);
            }
            (at, rest) = (at + rows, behind);
        }
    });
}

pub(super) fn nt(p: &dyn Any, [tile_expert, a, b, c, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let strides = [1, p.k as usize];
    multiply(
        p,
        tile_expert.ints(),
        a.read(),
        b.read(),
        c.write(),
        strides,
    );
}

pub(super) fn nn(p: &dyn Any, [tile_expert, a, b, c, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let strides = [p.n as usize, 1];
    multiply(
        p,
        tile_expert.ints(),
        a.read(),
        b.read(),
        c.write(),
        strides,
    );
}

pub(super) fn tn(p: &dyn Any, [places, a, b, c, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (places, a, b, c) = (places.ints(), a.read(), b.read(), c.write());
    let (m, n) = (p.m as usize, p.n as usize);
    let (counts, offsets) = places.split_at(p.experts as usize);
    for_each_part(c, p.stride as usize, |e, c| {
        let (terms, first) = (counts[e] as usize, offsets[e] as usize);
        let c = &mut c[..m * n];
        if terms == 0 {
            if p.add == 0 {
                c.fill(0.0);
            }
            return;
        }
        let (a, b) = (&a[first * m..], &b[first * n..]);
        multiply_tn([m, n, terms], c, p.add != 0, a, b);
    });
}
