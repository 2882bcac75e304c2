//! Fast twin of `shaders/column_sum.wgsl`.

use std::any::Any;

use super::math::wide;
use super::threads::{for_each_part, rows_per_piece};
use crate::cpu::{CpuArgs, params};
use crate::ops::column_sum::Params;

wide! {
    /// Adds columns `first..` of all rows of `partial` to `out`.
    fn add_rows(partial: &[f32], dim: usize, first: usize, out: &mut [f32]) {
        for row in partial.chunks_exact(dim) {
            for (out, value) in out.iter_mut().zip(&row[first..]) {
                *out += value;
            }
        }
    }
}

pub(super) fn forward(p: &dyn Any, [partial, out, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (rows, dim) = (p.rows as usize, p.dim as usize);
    let (partial, out) = (&partial.read()[..rows * dim], &mut out.write()[..dim]);
    let columns = rows_per_piece(rows);
    for_each_part(out, columns, |piece, out| {
        if p.add == 0 {
            out.fill(0.0);
        }
        add_rows(partial, dim, piece * columns, out);
    });
}
