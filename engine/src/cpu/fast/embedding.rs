//! Fast twins of `shaders/embedding.wgsl`.

use std::any::Any;
use std::cell::RefCell;

use super::math::accumulate;
use super::threads::{for_each_part, rows_per_piece};
use crate::cpu::{CpuArgs, params};
use crate::ops::embedding::Params;

thread_local! {
    /// The last row that had an id; kept, so that a step allocates nothing.
    static LAST: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

pub(super) fn forward(p: &dyn Any, [ids, table, y, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (ids, table, y) = (ids.ints(), table.read(), y.write());
    let dim = p.dim as usize;
    let rows = rows_per_piece(dim);
    for_each_part(y, rows * dim, |piece, y| {
        for (y, &id) in y.chunks_exact_mut(dim).zip(&ids[piece * rows..]) {
            let id = id.min(p.vocab - 1) as usize;
            y.copy_from_slice(&table[id * dim..][..dim]);
        }
    });
}

pub(super) fn backward_links(p: &dyn Any, [ids, next, first, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (ids, next, first) = (ids.ints(), next.write_ints(), first.write_ints());
    let none = p.rows;
    LAST.with_borrow_mut(|last| {
        last.clear();
        last.resize(p.vocab as usize, none);
        for (row, id) in ids.iter().enumerate() {
            let last = &mut last[id.min(&(p.vocab - 1)).to_owned() as usize];
            first[row] = u32::from(*last == none);
            if *last != none {
                next[*last as usize] = row as u32;
            }
            next[row] = none;
            *last = row as u32;
        }
    });
}

/// Each piece owns some rows of the table and looks for their ids: no chains needed, all reads in order.
pub(super) fn backward(p: &dyn Any, [ids, _, _, dy, d_table, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (ids, dy, d_table) = (ids.ints(), dy.read(), d_table.write());
    let (dim, vocab) = (p.dim as usize, p.vocab as usize);
    // Every piece reads all ids: few pieces.
    let rows = vocab
        .div_ceil(16)
        .max(rows_per_piece(p.rows as usize * dim / vocab));
    for_each_part(d_table, rows * dim, |piece, d_table| {
        for (id, dy) in ids.iter().zip(dy.chunks_exact(dim)) {
            let id = id.min(&(p.vocab - 1)).to_owned() as usize;
            if let Some(row) = id.checked_sub(piece * rows)
                && row < rows
            {
                accumulate(dy, &mut d_table[row * dim..][..dim]);
            }
        }
    });
}
