//! Fast twin of `shaders/anchor.wgsl`: a copy on all threads, and `gemm` on all threads, as the library comes.

use std::any::Any;

use super::matmul::{Matrix, product};
use super::threads::{for_each_part, rows_per_piece};
use crate::cpu::{CpuArgs, params, threads};
use crate::ops::anchor::Params;

pub(super) fn copy(p: &dyn Any, [x, y, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (x, y) = (x.read(), y.write());
    let len = rows_per_piece(1);
    for_each_part(&mut y[..4 * p.len as usize], len, |piece, y| {
        y.copy_from_slice(&x[piece * len..][..y.len()]);
    });
}

/// `c = a b` of square matrices of `size`, by one call of `gemm` a thread: what the matrix products here are compared with.
///
/// # Panics
/// If a slice is shorter than a matrix.
pub fn gemm(size: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    let rows = size.div_ceil(threads());
    for_each_part(&mut c[..size * size], rows * size, |piece, c| {
        let matrix = |data| Matrix {
            data,
            row: size,
            column: 1,
        };
        let shape = [c.len() / size, size, size];
        product(
            shape,
            c,
            false,
            matrix(&a[piece * rows * size..]),
            matrix(b),
        );
    });
}
