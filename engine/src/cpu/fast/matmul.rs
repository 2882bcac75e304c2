//! Matrix products: `gemm` on one piece of rows a thread.
//!
//! Every piece is one single-threaded call, so neither the cut nor the order of a sum depends on the number of threads.

use std::any::Any;
use std::cell::RefCell;

use gemm_common::Parallelism;

use super::math::wide;
use super::threads::for_each_part;
use crate::cpu::{CpuArgs, params};
use crate::ops::matmul::Params;

/// Multiply-adds that are worth a call (about 20 us).
const PIECE: usize = 1 << 20;

/// Below this many rows a transposed copy of the weights does not pay.
const FEW: usize = 16;

thread_local! {
    /// The transposed weights; kept, so that a step allocates nothing.
    static TRANSPOSED: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// A matrix in a slice: element `[i, j]` is at `i * row + j * column`.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    pub(super) data: &'a [f32],
    pub(super) row: usize,
    pub(super) column: usize,
}

/// `c (+)= a b` on this thread; `c` is `[m, n]`, row-major, the sum has `k` terms.
#[expect(
    unsafe_code,
    reason = "the matrix product of `gemm` takes pointers and strides"
)]
pub(super) fn product(
    [m, n, k]: [usize; 3],
    c: &mut [f32],
    add: bool,
    a: Matrix<'_>,
    b: Matrix<'_>,
) {
    let last = |matrix: Matrix<'_>, rows: usize, columns: usize| {
        (rows - 1) * matrix.row + (columns - 1) * matrix.column
    };
    assert!(m > 0 && n > 0 && k > 0, "plans have no empty tensors");
    assert!(
        c.len() >= m * n && last(a, m, k) < a.data.len() && last(b, k, n) < b.data.len(),
        "the matrices fill their slices"
    );
    // `gemm` prefers columns in a row, so it computes the transpose: c^T = b^T a^T.
    // SAFETY: every element that the strides reach lies inside the slices (asserted); `c` is borrowed mutably, so it does
    // not overlap `a` and `b`.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            n,
            m,
            k,
            c.as_mut_ptr(),
            n as isize,
            1,
            add,
            b.data.as_ptr(),
            b.row as isize,
            b.column as isize,
            a.data.as_ptr(),
            a.row as isize,
            a.column as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// Rows of a piece of an `[m, n]` output with `k` terms: whole tiles of `gemm`, few enough pieces.
pub(super) fn rows_of_a_piece(m: usize, n: usize, k: usize) -> usize {
    PIECE
        .div_ceil(n * k)
        .max(m.div_ceil(64))
        .next_multiple_of(8)
}

wide! {
    /// `to = from^T`, where `to` is rows of `columns` elements and `from` is `columns` rows, read from `first` on.
    fn transpose(to: &mut [f32], columns: usize, from: &[f32], from_row: usize, first: usize) {
        const BLOCK: usize = 16;
        let rows = to.len() / columns;
        for start in (0..columns).step_by(BLOCK) {
            if rows == BLOCK && start + BLOCK <= columns {
                for j in start..start + BLOCK {
                    let from = &from[j * from_row + first..][..BLOCK];
                    for i in 0..BLOCK {
                        to[i * columns + j] = from[i];
                    }
                }
            } else {
                for j in start..columns.min(start + BLOCK) {
                    for i in 0..rows {
                        to[i * columns + j] = from[j * from_row + first + i];
                    }
                }
            }
        }
    }
}

pub(super) fn nt(p: &dyn Any, [a, b, c, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (a, b, c) = (a.read(), b.read(), c.write());
    let (m, n, k) = (p.m as usize, p.n as usize, p.k as usize);
    if m < FEW {
        let (a, b) = (
            Matrix {
                data: a,
                row: k,
                column: 1,
            },
            Matrix {
                data: b,
                row: 1,
                column: k,
            },
        );
        return product([m, n, k], c, p.add != 0, a, b);
    }
    // Each call of `gemm` would transpose the weights for itself; once for all pieces is cheaper.
    let mut weights = TRANSPOSED.take();
    weights.resize((n * k).max(weights.len()), 0.0);
    for_each_part(&mut weights[..n * k], 16 * n, |piece, to| {
        transpose(to, n, b, k, piece * 16);
    });
    multiply([m, n, k], c, p.add != 0, a, &weights);
    TRANSPOSED.set(weights);
}

pub(super) fn nn(p: &dyn Any, [a, b, c, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (a, b, c) = (a.read(), b.read(), c.write());
    multiply(
        [p.m as usize, p.n as usize, p.k as usize],
        c,
        p.add != 0,
        a,
        b,
    );
}

/// `c (+)= a b`, all row-major, in pieces of rows.
fn multiply([m, n, k]: [usize; 3], c: &mut [f32], add: bool, a: &[f32], b: &[f32]) {
    let rows = rows_of_a_piece(m, n, k);
    for_each_part(&mut c[..m * n], rows * n, |piece, c| {
        let a = Matrix {
            data: &a[piece * rows * k..],
            row: k,
            column: 1,
        };
        let b = Matrix {
            data: b,
            row: n,
            column: 1,
        };
        product([c.len() / n, n, k], c, add, a, b);
    });
}

/// `c (+)= a^T b`, all row-major, in pieces of rows of `c`; `a` is `[k, m]`.
pub(super) fn multiply_tn([m, n, k]: [usize; 3], c: &mut [f32], add: bool, a: &[f32], b: &[f32]) {
    let rows = rows_of_a_piece(m, n, k);
    for_each_part(c, rows * n, |piece, c| {
        let a = Matrix {
            data: &a[piece * rows..],
            row: 1,
            column: m,
        };
        let b = Matrix {
            data: b,
            row: n,
            column: 1,
        };
        product([c.len() / n, n, k], c, add, a, b);
    });
}

pub(super) fn tn(p: &dyn Any, [a, b, c, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (a, b, c) = (a.read(), b.read(), c.write());
    let (m, n, k, slab) = (p.m as usize, p.n as usize, p.k as usize, p.slab as usize);
    for (number, c) in c.chunks_exact_mut(m * n).enumerate() {
        let first = number * slab;
        let terms = slab.min(k - first);
        let (a, b) = (&a[first * m..], &b[first * n..]);
        multiply_tn([m, n, terms], c, p.add != 0, a, b);
    }
}
