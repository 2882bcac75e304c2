//! Threads where the target has them, a plain loop where it has not.
//!
//! Every function here cuts its work by shape alone; threads only change who does a piece.

#[cfg(not(target_arch = "wasm32"))]
use rayon::prelude::*;

/// A piece of work is worth handing to a thread from about this many simple float operations on (roughly 10 us).
const PIECE: usize = 32_768;

/// How many rows make a piece, if a row costs `cost` simple float operations.
pub(crate) fn rows_per_piece(cost: usize) -> usize {
    PIECE.div_ceil(cost.max(1))
}

/// Run `body` where starting threads is cheap: among them.
pub(crate) fn enter<R: Send>(body: impl FnOnce() -> R + Send) -> R {
    #[cfg(not(target_arch = "wasm32"))]
    return rayon::scope(|_| body());
    #[cfg(target_arch = "wasm32")]
    return body();
}

/// Call `body(piece, part)` for each `len`-element part of `data`; the last may be shorter.
pub(crate) fn for_each_part<T: Send>(
    data: &mut [T],
    len: usize,
    body: impl Fn(usize, &mut [T]) + Send + Sync,
) {
    if data.len() <= len {
        if !data.is_empty() {
            body(0, data);
        }
        return;
    }
    #[cfg(not(target_arch = "wasm32"))]
    data.par_chunks_mut(len)
        .enumerate()
        .for_each(|(piece, part)| body(piece, part));
    #[cfg(target_arch = "wasm32")]
    data.chunks_mut(len)
        .enumerate()
        .for_each(|(piece, part)| body(piece, part));
}

/// Call `body(piece, part of a, part of b)` for two outputs that are cut into as many parts.
pub(crate) fn for_each_pair<A: Send, B: Send>(
    (a, a_len): (&mut [A], usize),
    (b, b_len): (&mut [B], usize),
    body: impl Fn(usize, &mut [A], &mut [B]) + Send + Sync,
) {
    if a.len() <= a_len && b.len() <= b_len {
        if !a.is_empty() || !b.is_empty() {
            body(0, a, b);
        }
        return;
    }
    #[cfg(not(target_arch = "wasm32"))]
    a.par_chunks_mut(a_len)
        .zip(b.par_chunks_mut(b_len))
        .enumerate()
        .for_each(|(piece, (a, b))| body(piece, a, b));
    #[cfg(target_arch = "wasm32")]
    a.chunks_mut(a_len)
        .zip(b.chunks_mut(b_len))
        .enumerate()
        .for_each(|(piece, (a, b))| body(piece, a, b));
}

/// Call `body(piece, part of a, part of b, part of c)` for three outputs that are cut into as many parts.
pub(crate) fn for_each_triple<A: Send, B: Send, C: Send>(
    (a, a_len): (&mut [A], usize),
    (b, b_len): (&mut [B], usize),
    (c, c_len): (&mut [C], usize),
    body: impl Fn(usize, &mut [A], &mut [B], &mut [C]) + Send + Sync,
) {
    if a.len() <= a_len && b.len() <= b_len && c.len() <= c_len {
        if !a.is_empty() || !b.is_empty() || !c.is_empty() {
            body(0, a, b, c);
        }
        return;
    }
    #[cfg(not(target_arch = "wasm32"))]
    a.par_chunks_mut(a_len)
        .zip(b.par_chunks_mut(b_len))
        .zip(c.par_chunks_mut(c_len))
        .enumerate()
        .for_each(|(piece, ((a, b), c))| body(piece, a, b, c));
    #[cfg(target_arch = "wasm32")]
    a.chunks_mut(a_len)
        .zip(b.chunks_mut(b_len))
        .zip(c.chunks_mut(c_len))
        .enumerate()
        .for_each(|(piece, ((a, b), c))| body(piece, a, b, c));
}
