//! Fast twin of `shaders/square_sum.wgsl`: the level that reads the gradients.

use std::any::Any;

use super::math::wide;
use super::threads::for_each_pair;
use crate::cpu::{CpuArgs, params};
use crate::optim::clip::SumParams;

/// Partial sums of a piece: 4 kB of each line of the gradient.
const PIECE: usize = 1_024;

pub(super) fn squares(p: &dyn Any, [input, partial, ..]: CpuArgs<'_, f32>) {
    let p: &SumParams = params(p);
    let input = &input.read()[..p.len as usize];
    let (sums, flags) = partial.write().split_at_mut(p.total as usize);
    let own = p.first as usize..(p.first + p.count) as usize;
    for_each_pair(
        (&mut sums[own.clone()], PIECE),
        (&mut flags[own], PIECE),
        |piece, sums, flags| {
            let mut largest = [0; PIECE];
            let largest = &mut largest[..sums.len()];
            sums.fill(0.0);
            for line in input.chunks(p.count as usize) {
                if let Some(line) = line.get(piece * PIECE..) {
                    add_line(line, sums, largest);
                }
            }
            for (flag, &bits) in flags.iter_mut().zip(&*largest) {
                *flag = if bits >= NON_FINITE { 1.0 } else { 0.0 };
            }
        },
    );
}

/// Bits of infinity; those of every NaN are larger.
const NON_FINITE: u32 = 0x7f80_0000;

wide! {
    /// Add squares, and keep the largest bits of an absolute value.
    fn add_line(line: &[f32], sums: &mut [f32], largest: &mut [u32]) {
        for ((value, sum), largest) in line.iter().zip(sums).zip(largest) {
            *sum += value * value;
            *largest = (value.to_bits() & 0x7fff_ffff).max(*largest);
        }
    }
}
