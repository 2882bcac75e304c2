//! Threads where the target has them, a plain loop where it has not.

#[cfg(not(target_arch = "wasm32"))]
use rayon::prelude::*;

/// Call `body(piece, part)` for each `len`-element part of `data`; the last may be shorter.
pub(crate) fn for_each_part<T: Send>(
    data: &mut [T],
    len: usize,
    body: impl Fn(usize, &mut [T]) + Send + Sync,
) {
    #[cfg(not(target_arch = "wasm32"))]
    data.par_chunks_mut(len)
        .enumerate()
        .for_each(|(piece, part)| body(piece, part));
    #[cfg(target_arch = "wasm32")]
    data.chunks_mut(len)
        .enumerate()
        .for_each(|(piece, part)| body(piece, part));
}
