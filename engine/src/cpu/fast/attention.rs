//! Fast twins of `shaders/attention.wgsl`: blocks of queries against all their keys, as small matrix products.
//!
//! A piece of work is a run of rows of the output, all heads. Keys and values are transposed once per piece and head, so
//! that scores of neighbouring keys lie side by side in a vector. Scores exist for [`QUERIES`] queries at a time.

use std::any::Any;
use std::cell::RefCell;
use std::ops::Range;

use super::math::{exp, max, sum, wide};
use super::threads::{for_each_pair, for_each_part};
use crate::cpu::{CpuArgs, params};
use crate::ops::attention::Params;

/// Rows (tokens) of the output in a piece of work.
const ROWS: usize = 64;

/// Queries in a block of scores. Small: half a block above the diagonal is computed for nothing.
const QUERIES: usize = 16;

/// Columns of transposed keys are padded to a whole number of vectors.
const LANES: usize = 16;

thread_local! {
    /// Memory of one piece; kept, so that a step allocates nothing.
    static SCRATCH: RefCell<[Vec<f32>; 4]> = const { RefCell::new([const { Vec::new() }; 4]) };
}

/// `[i, j]` is at `i * steps[0] + j * steps[1]`.
#[derive(Clone, Copy)]
struct Matrix<'a> {
    data: &'a [f32],
    steps: [usize; 2],
}

/// `sums + a * b`. By value: arrays behind references do not become registers.
#[inline(always)]
fn plus<const N: usize>(mut sums: [f32; N], a: f32, b: &[f32; N]) -> [f32; N] {
    for j in 0..N {
        sums[j] += a * b[j];
    }
    sums
}

#[inline(always)]
fn store<const N: usize>(c: &mut [f32], sums: [f32; N], add: bool) {
    for (c, sum) in c[..N].iter_mut().zip(sums) {
        *c = if add { *c + sum } else { sum };
    }
}

/// One row and `N` columns of [`product`].
#[inline(always)]
fn one_row<const N: usize>(
    terms: usize,
    (c, _): (&mut [f32], usize),
    add: bool,
    a: Matrix<'_>,
    (b, b_row): (&[f32], usize),
) {
    let mut sums = [0.0; N];
    for l in 0..terms {
        let b = b[l * b_row..].first_chunk().expect(COLUMNS);
        sums = plus(sums, a.data[l * a.steps[1]], b);
    }
    store(c, sums, add);
}

/// Four rows and `N` columns of [`product`].
#[inline(always)]
fn four_rows<const N: usize>(
    terms: usize,
    (c, c_row): (&mut [f32], usize),
    add: bool,
    a: Matrix<'_>,
    (b, b_row): (&[f32], usize),
) {
    let (mut s0, mut s1, mut s2, mut s3) = ([0.0; N], [0.0; N], [0.0; N], [0.0; N]);
    let [row, column] = a.steps;
    for l in 0..terms {
        let b = b[l * b_row..].first_chunk().expect(COLUMNS);
        s0 = plus(s0, a.data[l * column], b);
        s1 = plus(s1, a.data[l * column + row], b);
        s2 = plus(s2, a.data[l * column + 2 * row], b);
        s3 = plus(s3, a.data[l * column + 3 * row], b);
    }
    for (i, sums) in [s0, s1, s2, s3].into_iter().enumerate() {
        store(&mut c[i * c_row..], sums, add);
    }
}

const COLUMNS: &str = "`product` asks for columns that exist";

wide! {
    /// `c (+)= a b` for `a` `[m, k]` and `b` `[k, n]`, rows of `b` and `c` contiguous. `sizes` is `[m, n, k]`.
    fn product(sizes: [usize; 3], c: (&mut [f32], usize), add: bool, a: Matrix<'_>, b: (&[f32], usize)) {
        let ([m, n, k], (c, c_row), (b, b_row)) = (sizes, c, b);
        let mut i = 0;
        while i < m {
            let four = i + 4 <= m;
            let a = Matrix { data: &a.data[i * a.steps[0]..], ..a };
            let mut j = 0;
            while j < n {
                let c = (&mut c[i * c_row + j..], c_row);
                let b = (&b[j..], b_row);
                let columns = match n - j {
                    LANES.. => LANES,
                    4.. => 4,
                    _ => 1,
                };
                match (four, columns) {
                    (true, LANES) => four_rows::<LANES>(k, c, add, a, b),
                    (true, 4) => four_rows::<4>(k, c, add, a, b),
                    (true, _) => four_rows::<1>(k, c, add, a, b),
                    (false, LANES) => one_row::<LANES>(k, c, add, a, b),
                    (false, 4) => one_row::<4>(k, c, add, a, b),
                    (false, _) => one_row::<1>(k, c, add, a, b),
                }
                j += columns;
            }
            i += if four { 4 } else { 1 };
        }
    }
}

wide! {
    /// `to[c, s] = rows[s, c]`; rows of `to` are `to_row` apart, what is not written is 0.
    fn transpose(to: &mut [f32], to_row: usize, rows: Matrix<'_>, count: usize, dim: usize) {
        to[..dim * to_row].fill(0.0);
        for s in 0..count {
            let row = &rows.data[s * rows.steps[0]..][..dim];
            for (c, &x) in row.iter().enumerate() {
                to[c * to_row + s] = x;
            }
        }
    }
}

wide! {
    /// Scores to `exp(scale * score - top)`; returns `top`, the largest scaled score, and the sum.
    fn softmax(scores: &mut [f32], scale: f32) -> [f32; 2] {
        scores.iter_mut().for_each(|score| *score *= scale);
        let top = max(scores);
        scores.iter_mut().for_each(|score| *score = exp(*score - top));
        [top, sum(scores)]
    }
}

wide! {
    /// Scores to `p`, and `dp` to `ds`.
    fn slopes(scores: &mut [f32], dp: &mut [f32], scale: f32, lse: f32, delta: f32) {
        for (score, dp) in scores.iter_mut().zip(dp) {
            let p = exp(*score * scale - lse);
            *score = p;
            *dp = p * (*dp - delta) * scale;
        }
    }
}

wide! {
    fn scale_row(row: &mut [f32], factor: f32) {
        row.iter_mut().for_each(|x| *x *= factor);
    }
}

/// Cut rows `first..first + count` of all sequences into runs of one sequence: `(b, tokens)`.
fn runs(first: usize, count: usize, tokens: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
    let end = first + count;
    (first / tokens..end.div_ceil(tokens)).map(move |b| {
        let start = b * tokens;
        (b, first.max(start) - start..end.min(start + tokens) - start)
    })
}

/// Blocks of at most [`QUERIES`] tokens.
fn blocks(tokens: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = tokens.end;
    tokens
        .step_by(QUERIES)
        .map(move |t| t..end.min(t + QUERIES))
}

/// At least `len` elements.
fn grow(memory: &mut Vec<f32>, len: usize) -> &mut [f32] {
    if memory.len() < len {
        memory.resize(len, 0.0);
    }
    memory
}

/// Shapes as `usize`.
#[derive(Clone, Copy)]
struct Sizes {
    tokens: usize,
    heads: usize,
    kv_heads: usize,
    dim: usize,
    scale: f32,
}

impl Sizes {
    fn of(p: &Params) -> Self {
        Self {
            tokens: p.tokens as usize,
            heads: p.heads as usize,
            kv_heads: p.kv_heads as usize,
            dim: p.dim as usize,
            scale: p.scale as f32,
        }
    }

    /// Heads that read key/value head `g`.
    fn group(&self, g: usize) -> Range<usize> {
        let members = self.heads / self.kv_heads;
        g * members..(g + 1) * members
    }

    /// Elements from one token to the next.
    fn query_step(&self) -> usize {
        self.heads * self.dim
    }

    fn key_step(&self) -> usize {
        self.kv_heads * self.dim
    }

    /// Rows of one head of `x`, from token `t` of sequence `b` on; for `q` and its like.
    fn query<'a>(&self, x: &'a [f32], b: usize, t: usize, h: usize) -> Matrix<'a> {
        Matrix {
            data: &x[(b * self.tokens + t) * self.query_step() + h * self.dim..],
            steps: [self.query_step(), 1],
        }
    }

    /// The same for `k` and its like.
    fn key<'a>(&self, x: &'a [f32], b: usize, s: usize, g: usize) -> Matrix<'a> {
        Matrix {
            data: &x[(b * self.tokens + s) * self.key_step() + g * self.dim..],
            steps: [self.key_step(), 1],
        }
    }
}

pub(super) fn forward(p: &dyn Any, [q, k, v, o, lse, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (q, k, v, o, lse) = (q.read(), k.read(), v.read(), o.write(), lse.write());
    let sizes = Sizes::of(p);
    let (heads, dim, step) = (sizes.heads, sizes.dim, sizes.query_step());
    for_each_pair((o, ROWS * step), (lse, ROWS * heads), |piece, o, lse| {
        let mut scratch = SCRATCH.take();
        let [keys, scores, ..] = &mut scratch;
        let first = piece * ROWS;
        for (b, tokens) in runs(first, lse.len() / heads, sizes.tokens) {
            let row = tokens.end.next_multiple_of(LANES);
            let keys = grow(keys, dim * row);
            let scores = grow(scores, QUERIES * row);
            for g in 0..sizes.kv_heads {
                transpose(keys, row, sizes.key(k, b, 0, g), tokens.end, dim);
                for (h, block) in sizes
                    .group(g)
                    .flat_map(|h| blocks(tokens.clone()).map(move |block| (h, block)))
                {
                    let (count, seen) = (block.len(), block.end);
                    let shape = [count, seen.next_multiple_of(LANES), dim];
                    let asked = sizes.query(q, b, block.start, h);
                    product(shape, (scores, row), false, asked, (keys, row));
                    let mut totals = [[0.0; 2]; QUERIES];
                    for (i, t) in block.clone().enumerate() {
                        let scores = &mut scores[i * row..][..seen];
                        totals[i] = softmax(&mut scores[..=t], sizes.scale);
                        scores[t + 1..].fill(0.0);
                    }
                    let own = b * sizes.tokens + block.start - first;
                    let o = &mut o[own * step + h * dim..];
                    let weights = Matrix {
                        data: scores,
                        steps: [row, 1],
                    };
                    let values = sizes.key(v, b, 0, g);
                    product(
                        [count, dim, seen],
                        (o, step),
                        false,
                        weights,
                        (values.data, sizes.key_step()),
                    );
                    for (i, [top, total]) in totals[..count].iter().enumerate() {
                        scale_row(&mut o[i * step..][..dim], 1.0 / total);
                        lse[(own + i) * heads + h] = top + total.ln();
                    }
                }
            }
        }
        SCRATCH.set(scratch);
    });
}

wide! {
    fn inner_rows(x: &[f32], y: &[f32], dim: usize, out: &mut [f32]) {
        let rows = x.chunks_exact(dim).zip(y.chunks_exact(dim));
        for ((x, y), out) in rows.zip(out) {
            let mut chains = [0.0; LANES];
            let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
            for (x, y) in x.iter().zip(y) {
                for i in 0..LANES {
                    chains[i] += x[i] * y[i];
                }
            }
            for (chain, (x, y)) in chains.iter_mut().zip(x_rest.iter().zip(y_rest)) {
                *chain += x * y;
            }
            *out = chains.iter().sum();
        }
    }
}

pub(super) fn backward_delta(p: &dyn Any, [o, d_o, delta, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (o, d_o, delta) = (o.read(), d_o.read(), delta.write());
    let (dim, rows) = (p.dim as usize, ROWS * p.heads as usize);
    for_each_part(delta, rows, |piece, delta| {
        let part = piece * rows * dim..(piece * rows + delta.len()) * dim;
        inner_rows(&o[part.clone()], &d_o[part], dim, delta);
    });
}

/// What both halves of the gradient read.
#[derive(Clone, Copy)]
struct Inputs<'a> {
    q: &'a [f32],
    d_o: &'a [f32],
    lse: &'a [f32],
    delta: &'a [f32],
    sizes: Sizes,
}

impl Inputs<'_> {
    /// `p` and `ds` of a block of queries of one head against keys `from..from + count`, whose transposes are given; rows
    /// are `row` apart. 0 above the diagonal.
    fn pairs(
        &self,
        (b, h, block): (usize, usize, &Range<usize>),
        (from, count): (usize, usize),
        [keys, values]: [&[f32]; 2],
        row: usize,
        [p, ds]: [&mut [f32]; 2],
    ) {
        let sizes = &self.sizes;
        let shape = [block.len(), count.next_multiple_of(LANES), sizes.dim];
        let at = |x| sizes.query(x, b, block.start, h);
        product(shape, (p, row), false, at(self.q), (keys, row));
        product(shape, (ds, row), false, at(self.d_o), (values, row));
        for (i, t) in block.clone().enumerate() {
            let query = (b * sizes.tokens + t) * sizes.heads + h;
            let (p, ds) = (&mut p[i * row..][..count], &mut ds[i * row..][..count]);
            let seen = (t + 1).saturating_sub(from).min(count);
            slopes(
                &mut p[..seen],
                &mut ds[..seen],
                sizes.scale,
                self.lse[query],
                self.delta[query],
            );
            p[seen..].fill(0.0);
            ds[seen..].fill(0.0);
        }
    }
}

pub(super) fn backward_query(p: &dyn Any, [q, k, v, d_o, lse, delta, dq, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (sizes, dq) = (Sizes::of(p), dq.write());
    let (q, k, v) = (q.read(), k.read(), v.read());
    let (d_o, lse, delta) = (d_o.read(), lse.read(), delta.read());
    let inputs = Inputs {
        q,
        d_o,
        lse,
        delta,
        sizes,
    };
    let (dim, step) = (sizes.dim, sizes.query_step());
    for_each_part(dq, ROWS * step, |piece, dq| {
        let mut scratch = SCRATCH.take();
        let [keys, values, weights, ds] = &mut scratch;
        let first = piece * ROWS;
        for (b, tokens) in runs(first, dq.len() / step, sizes.tokens) {
            let row = tokens.end.next_multiple_of(LANES);
            let (keys, values) = (grow(keys, dim * row), grow(values, dim * row));
            let (weights, ds) = (grow(weights, QUERIES * row), grow(ds, QUERIES * row));
            for g in 0..sizes.kv_heads {
                let of_head = sizes.key(k, b, 0, g);
                transpose(keys, row, of_head, tokens.end, dim);
                transpose(values, row, sizes.key(v, b, 0, g), tokens.end, dim);
                for h in sizes.group(g) {
                    for block in blocks(tokens.clone()) {
                        let seen = block.end;
                        inputs.pairs(
                            (b, h, &block),
                            (0, seen),
                            [keys, values],
                            row,
                            [weights, ds],
                        );
                        let own = b * sizes.tokens + block.start - first;
                        let dq = &mut dq[own * step + h * dim..];
                        let slopes = Matrix {
                            data: ds,
                            steps: [row, 1],
                        };
                        product(
                            [block.len(), dim, seen],
                            (dq, step),
                            p.add != 0,
                            slopes,
                            (of_head.data, sizes.key_step()),
                        );
                    }
                }
            }
        }
        SCRATCH.set(scratch);
    });
}

pub(super) fn backward_key_value(
    p: &dyn Any,
    [q, k, v, d_o, lse, delta, dk, dv]: CpuArgs<'_, f32>,
) {
    let p: &Params = params(p);
    let (sizes, dk, dv) = (Sizes::of(p), dk.write(), dv.write());
    let (q, k, v) = (q.read(), k.read(), v.read());
    let (d_o, lse, delta) = (d_o.read(), lse.read(), delta.read());
    let inputs = Inputs {
        q,
        d_o,
        lse,
        delta,
        sizes,
    };
    let (dim, step) = (sizes.dim, sizes.key_step());
    for_each_pair((dk, ROWS * step), (dv, ROWS * step), |piece, dk, dv| {
        let mut scratch = SCRATCH.take();
        let [keys, values, weights, ds] = &mut scratch;
        if p.add == 0 {
            dk.fill(0.0);
        }
        if p.add_value == 0 {
            dv.fill(0.0);
        }
        let first = piece * ROWS;
        for (b, tokens) in runs(first, dk.len() / step, sizes.tokens) {
            let row = tokens.len().next_multiple_of(LANES);
            let (keys, values) = (grow(keys, dim * row), grow(values, dim * row));
            let (weights, ds) = (grow(weights, QUERIES * row), grow(ds, QUERIES * row));
            let own = b * sizes.tokens + tokens.start - first;
            for g in 0..sizes.kv_heads {
                transpose(
                    keys,
                    row,
                    sizes.key(k, b, tokens.start, g),
                    tokens.len(),
                    dim,
                );
                transpose(
                    values,
                    row,
                    sizes.key(v, b, tokens.start, g),
                    tokens.len(),
                    dim,
                );
                let (dk, dv) = (
                    &mut dk[own * step + g * dim..],
                    &mut dv[own * step + g * dim..],
                );
                for h in sizes.group(g) {
                    for block in blocks(tokens.start..sizes.tokens) {
                        // Keys that any query of the block sees.
                        let count = block.end.min(tokens.end) - tokens.start;
                        let part = (tokens.start, count);
                        inputs.pairs((b, h, &block), part, [keys, values], row, [weights, ds]);
                        let shape = [count, dim, block.len()];
                        let of = |data, x| {
                            let queries = sizes.query(x, b, block.start, h).data;
                            (
                                Matrix {
                                    data,
                                    steps: [1, row],
                                },
                                (queries, sizes.query_step()),
                            )
                        };
                        let (slopes, queries) = of(&*ds, q);
                        product(shape, (&mut *dk, step), true, slopes, queries);
                        let (weights, d_out) = of(&*weights, d_o);
                        product(shape, (&mut *dv, step), true, weights, d_out);
                    }
                }
            }
        }
        SCRATCH.set(scratch);
    });
}
