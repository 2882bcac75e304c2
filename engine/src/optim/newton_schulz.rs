//! Newton-Schulz iteration: the nearest matrix whose singular values are all 1, roughly, by products alone.
//!
//! `X = X / (|X|_F + 1e-7)`, then repeatedly `A = X X^T`, `X = (a I + b A + c A^2) X`. Jordan's coefficients push small singular
//! values up fast and leave all of them between about 0.7 and 1.2 (K. Jordan, "Muon: An optimizer for hidden layers in neural
//! networks", 2024); those of V4 settle them at 1.
//!
//! The kernels are `shaders/newton_schulz.wgsl` and, for the products, `tn` of `shaders/matmul.wgsl`, which multiplies a whole
//! stack of matrices in one call. It transposes its left factor, so each iteration begins with the transposed `X`.

use super::muon::Iterations;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, kernels};
use crate::ops::matmul::stacked_tn;
use crate::tape::{Tape, Tensor};

/// Added to the Frobenius norm, so that zero stays zero. `shaders/newton_schulz.wgsl` has it as well.
pub const NORM_EPS: f64 = 1e-7;

/// The most partial sums of a norm.
const MOST_CHUNKS: u32 = 256;

crate::params! {
    /// Parameters of the kernels.
    pub struct Params {
        /// Matrices.
        count: u32,
        /// Rows of each.
        rows: u32,
        /// Columns of each.
        cols: u32,
        /// Partial sums of a matrix.
        chunks: u32,
        /// Factor of the identity.
        alpha: f64,
        /// Factor of the first matrix.
        beta: f64,
        /// Factor of the second matrix.
        gamma: f64,
    }
}

/// Record the iteration for a stack `x` `[count, rows, cols]` of matrices that have no more rows than columns; `x` itself is
/// normalised in place. Returns a stack of the same shape.
///
/// # Errors
/// If `x` has another length, or the matrices stand.
pub fn newton_schulz(
    tape: &mut Tape,
    x: Tensor,
    [count, rows, cols]: [u32; 3],
    iterations: Iterations,
) -> Result<Tensor> {
    let len = |rows: u32, cols: u32| count as usize * rows as usize * cols as usize;
    if x.shape.len() != len(rows, cols) || rows > cols || x.shape.len() > u32::MAX as usize {
        return Err(Error::shape(
            "newton_schulz",
            "x",
            [count, rows, cols],
            x.shape,
        ));
    }
    let params = Params {
        count,
        rows,
        cols,
        chunks: (rows * cols).div_ceil(64).min(MOST_CHUNKS),
        alpha: 0.0,
        beta: 0.0,
        gamma: 0.0,
    };
    let call =
        |tape: &mut Tape, kernel: &'static Kernel, params: &Params, args: &[Tensor], items| {
            tape.dispatch(kernel, params.clone(), args, items)
        };
    let parts = (count * params.chunks) as usize;
    let partial = tape.scratch("squares of the momentum", parts);
    let factor = tape.scratch("norms of the momentum", count as usize);
    call(
        tape,
        &kernels::NEWTON_SCHULZ_SQUARES,
        &params,
        &[x, partial],
        parts,
    )?;
    call(
        tape,
        &kernels::NEWTON_SCHULZ_NORMS,
        &params,
        &[partial, factor],
        count as usize,
    )?;
    call(
        tape,
        &kernels::NEWTON_SCHULZ_NORMALISE,
        &params,
        &[factor, x],
        len(rows, cols),
    )?;
    let mut x = x;
    for [alpha, beta, gamma] in iterations.coefficients() {
        let standing = tape.scratch("transposed momentum", len(rows, cols));
        call(
            tape,
            &kernels::NEWTON_SCHULZ_TRANSPOSE,
            &params,
            &[x, standing],
            len(rows, cols),
        )?;
        let gram = tape.scratch("X X^T", len(rows, rows));
        stacked_tn(tape, count, [rows, rows, cols], [standing, standing, gram])?;
        let square = tape.scratch("(X X^T)^2", len(rows, rows));
        stacked_tn(tape, count, [rows, rows, rows], [gram, gram, square])?;
        let factor = tape.scratch("polynomial of X X^T", len(rows, rows));
        let mix = Params {
            cols: rows,
            alpha,
            beta,
            gamma,
            ..params
        };
        let args = [gram, square, factor];
        call(
            tape,
            &kernels::NEWTON_SCHULZ_POLYNOMIAL,
            &mix,
            &args,
            len(rows, rows),
        )?;
        let next = tape.scratch("orthogonalised momentum", len(rows, cols));
        // The factor is symmetric.
        stacked_tn(tape, count, [rows, cols, rows], [factor, x, next])?;
        x = next;
    }
    Ok(x)
}
