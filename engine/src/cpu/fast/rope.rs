//! Fast twin of `shaders/rope.wgsl`.

use std::any::Any;

use super::math::wide;
use super::threads::{for_each_part, rows_per_piece};
use crate::cpu::{CpuArgs, params};
use crate::ops::rope::Params;

wide! {
    /// Rotate all heads of one token.
    fn turn(x: &[f32], cosines: &[f32], sines: &[f32], sign: f32, y: &mut [f32], add: bool) {
        let half = cosines.len();
        for (x, y) in x.chunks_exact(2 * half).zip(y.chunks_exact_mut(2 * half)) {
            let ((x_low, x_high), (y_low, y_high)) = (x.split_at(half), y.split_at_mut(half));
            let x = x_low.iter().zip(x_high);
            let angles = cosines.iter().zip(sines);
            for ((y, x), (cosine, sine)) in y_low.iter_mut().zip(y_high).zip(x).zip(angles) {
                let sine = sine * sign;
                let (low, high) = (x.0 * cosine - x.1 * sine, x.1 * cosine + x.0 * sine);
                *y.0 = if add { *y.0 } else { 0.0 } + low;
                *y.1 = if add { *y.1 } else { 0.0 } + high;
            }
        }
    }
}

pub(super) fn rotate(p: &dyn Any, [x, cosines, sines, y, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (x, cosines, sines, y) = (x.read(), cosines.read(), sines.read(), y.write());
    let (half, seq_len) = (p.half_dim as usize, p.seq_len as usize);
    let token = p.heads as usize * 2 * half;
    let tokens = rows_per_piece(3 * token);
    for_each_part(y, tokens * token, |piece, y| {
        for (number, y) in y.chunks_exact_mut(token).enumerate() {
            let number = piece * tokens + number;
            let angles = number % seq_len * half..(number % seq_len + 1) * half;
            let (cosines, sines) = (&cosines[angles.clone()], &sines[angles]);
            let x = &x[number * token..][..token];
            turn(x, cosines, sines, p.sign as f32, y, p.add != 0);
        }
    });
}
