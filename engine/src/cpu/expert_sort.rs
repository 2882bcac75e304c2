//! Twins of `shaders/expert_rank.wgsl` and `shaders/expert_sort.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::expert_sort::{NONE, Params, RankParams};

pub(super) fn rank<T: Real>(p: &dyn Any, [chosen, rank, places, ..]: CpuArgs<'_, T>) {
    let p: &RankParams = params(p);
    let (chosen, rank, places) = (chosen.ints(), rank.write_ints(), places.write_ints());
    let counts = places.len() / 2;
    let counts = &mut places[..counts];
    counts.fill(0);
    for (rank, &e) in rank.iter_mut().zip(chosen).take(p.pairs as usize) {
        *rank = counts[e as usize];
        counts[e as usize] += 1;
    }
}

pub(super) fn forward_offsets<T: Real>(p: &dyn Any, [places, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (counts, offsets) = places.write_ints().split_at_mut(p.experts as usize);
    let mut next = 0;
    for (&mut count, offset) in counts.iter_mut().zip(offsets) {
        *offset = next;
        next += count.next_multiple_of(p.tile);
    }
}

pub(super) fn forward<T: Real>(
    p: &dyn Any,
    [places, chosen, rank, slot_row, row_pair, tile_expert, ..]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let (places, chosen, rank) = (places.ints(), chosen.ints(), rank.ints());
    let (slot_row, row_pair) = (slot_row.write_ints(), row_pair.write_ints());
    let tile_expert = tile_expert.write_ints();
    row_pair.fill(NONE);
    tile_expert.fill(NONE);
    let (counts, offsets) = places.split_at(p.experts as usize);
    for pair in 0..p.pairs as usize {
        let row = offsets[chosen[pair] as usize] + rank[pair];
        slot_row[pair] = row;
        row_pair[row as usize] = pair as u32;
    }
    for (e, (&count, &offset)) in (0..).zip(counts.iter().zip(offsets)) {
        let tiles = (offset / p.tile) as usize..((offset + count).div_ceil(p.tile)) as usize;
        tile_expert[tiles].fill(e);
    }
}
