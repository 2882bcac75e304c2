//! Fast twins of `shaders/dual_write.wgsl`: rows in parallel.

use std::any::Any;

use super::math::{LANES, dot, total, wide};
use super::threads::{for_each_pair, for_each_part, rows_per_piece};
use crate::cpu::{CpuArgs, params};
use crate::ops::dual_write::{Params, SKIP};

pub(super) fn forward(p: &dyn Any, [gates, y, history, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (gates, y) = (gates.read(), y.read());
    let (dim, len) = (p.dim as usize, (p.rows * p.dim) as usize);
    // New slots lie behind old ones.
    let (old, new) = history.write().split_at_mut(p.new0 as usize);
    let (new0, new1) = new.split_at_mut((p.new1 - p.new0) as usize);
    let old = (p.has_old != 0).then(|| [p.old0, p.old1].map(|start| &old[start as usize..][..len]));
    let rows = rows_per_piece(dim * 10);
    for_each_pair(
        (&mut new0[..len], rows * dim),
        (&mut new1[..len], rows * dim),
        |piece, new0, new1| {
            let gates = &gates[piece * rows * 5..];
            let at = piece * rows * dim..piece * rows * dim + new0.len();
            let y = &y[at.clone()];
            match old.map(|old| old.map(|old| &old[at.clone()])) {
                Some([old0, old1]) => carry(dim, gates, y, old0, old1, new0, new1),
                None => begin(dim, gates, y, new0, new1),
            }
        },
    );
}

wide! {
    fn begin(dim: usize, gates: &[f32], y: &[f32], new0: &mut [f32], new1: &mut [f32]) {
        let rows = y.chunks_exact(dim).zip(gates.chunks_exact(5));
        let new = new0.chunks_exact_mut(dim).zip(new1.chunks_exact_mut(dim));
        for ((y, gates), (new0, new1)) in rows.zip(new) {
            for ((y, new0), new1) in y.iter().zip(new0).zip(new1) {
                *new0 = gates[3] * y;
                *new1 = gates[4] * y;
            }
        }
    }
}

wide! {
    fn carry(
        dim: usize,
        gates: &[f32],
        y: &[f32],
        old0: &[f32],
        old1: &[f32],
        new0: &mut [f32],
        new1: &mut [f32],
    ) {
        let old = old0.chunks_exact(dim).zip(old1.chunks_exact(dim));
        let new = new0.chunks_exact_mut(dim).zip(new1.chunks_exact_mut(dim));
        let rows = y.chunks_exact(dim).zip(gates.chunks_exact(5));
        for (((y, gates), (old0, old1)), (new0, new1)) in rows.zip(old).zip(new) {
            let (rho, rest) = (gates[2], 1.0 - gates[2]);
            let (beta0, beta1) = (gates[3], gates[4]);
            let old = old0.iter().zip(old1);
            for ((y, (old0, old1)), (new0, new1)) in y.iter().zip(old).zip(new0.iter_mut().zip(new1)) {
                *new0 = rho * old0 + rest * old1 + beta0 * y;
                *new1 = rho * old1 + rest * old0 + beta1 * y;
            }
        }
    }
}

/// Gradients of the new partials. One may be absent; the other then stands in for it with the factor 0.
struct Upstream<'a> {
    grads: [&'a [f32]; 2],
    present: [f32; 2],
}

impl<'a> Upstream<'a> {
    fn new(p: &Params, new: &'a [f32]) -> Self {
        let len = (p.rows * p.dim) as usize;
        let grads = [0, (p.new1 - p.new0) as usize].map(|start| &new[start..][..len]);
        match (p.has_grad0, p.has_grad1) {
            (0, _) => Self {
                grads: [grads[1]; 2],
                present: [0.0, 1.0],
            },
            (_, 0) => Self {
                grads: [grads[0]; 2],
                present: [1.0, 0.0],
            },
            _ => Self {
                grads,
                present: [1.0; 2],
            },
        }
    }

    /// `out (+)= factors[0] dnew^0 + factors[1] dnew^1` for each row's factors.
    fn put(
        &self,
        dim: usize,
        gates: &[f32],
        (how, out): (u32, &mut [f32]),
        factors: impl Fn(&[f32]) -> [f32; 2] + Sync + Send,
    ) {
        if how == SKIP {
            return;
        }
        let rows = rows_per_piece(dim * 4);
        for_each_part(out, rows * dim, |piece, out| {
            for (row, out) in out.chunks_exact_mut(dim).enumerate() {
                let row = piece * rows + row;
                let [a, b] = factors(&gates[row * 5..][..5]);
                let (a, b) = (a * self.present[0], b * self.present[1]);
                let [dnew0, dnew1] = self.grads.map(|grad| &grad[row * dim..][..dim]);
                if how == 0 {
                    store_mix(out, a, dnew0, b, dnew1);
                } else {
                    add_mix(out, a, dnew0, b, dnew1);
                }
            }
        });
    }
}

wide! {
    fn store_mix(out: &mut [f32], a: f32, x: &[f32], b: f32, y: &[f32]) {
        for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
            *out = a * x + b * y;
        }
    }
}

wide! {
    fn add_mix(out: &mut [f32], a: f32, x: &[f32], b: f32, y: &[f32]) {
        for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
            *out += a * x + b * y;
        }
    }
}

pub(super) fn backward(p: &dyn Any, [gates, history_grad, dy, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let gates = gates.read();
    let (dim, len) = (p.dim as usize, (p.rows * p.dim) as usize);
    let (old, new) = history_grad.write().split_at_mut(p.new0 as usize);
    let upstream = Upstream::new(p, new);
    upstream.put(dim, gates, (p.put_y, dy.write()), |gates| {
        [gates[3], gates[4]]
    });
    if p.has_old != 0 {
        let old0 = (p.put_old0, &mut old[p.old0 as usize..][..len]);
        upstream.put(dim, gates, old0, |gates| [gates[2], 1.0 - gates[2]]);
        let old1 = (p.put_old1, &mut old[p.old1 as usize..][..len]);
        upstream.put(dim, gates, old1, |gates| [1.0 - gates[2], gates[2]]);
    }
}

pub(super) fn backward_gates(
    p: &dyn Any,
    [history, y, history_grad, dgates, ..]: CpuArgs<'_, f32>,
) {
    let p: &Params = params(p);
    let (history, y, history_grad) = (history.read(), y.read(), history_grad.read());
    let dim = p.dim as usize;
    let upstream = Upstream::new(p, &history_grad[p.new0 as usize..]);
    let rows = rows_per_piece(dim * 8);
    for_each_part(dgates.write(), rows * 5, |piece, dgates| {
        for (row, dgates) in dgates.chunks_exact_mut(5).enumerate() {
            let start = (piece * rows + row) * dim;
            let [dnew0, dnew1] = upstream.grads.map(|grad| &grad[start..][..dim]);
            let old = (p.has_old != 0)
                .then(|| [p.old0, p.old1].map(|old| &history[old as usize + start..][..dim]));
            let sums = gate_sums(&y[start..][..dim], upstream.present, dnew0, dnew1, old);
            if p.put_gates == 0 {
                dgates[..2].fill(0.0);
                dgates[2..].copy_from_slice(&sums);
            } else {
                dgates[2..]
                    .iter_mut()
                    .zip(sums)
                    .for_each(|(to, sum)| *to += sum);
            }
        }
    });
}

wide! {
    /// Gradients of rho, `beta_0` and `beta_1` of one row.
    fn gate_sums(
        y: &[f32],
        present: [f32; 2],
        dnew0: &[f32],
        dnew1: &[f32],
        old: Option<[&[f32]; 2]>,
    ) -> [f32; 3] {
        let mut rho = 0.0;
        if let Some([old0, old1]) = old {
            let mut chains = [0.0; LANES];
            let (dnew0, dnew0_rest) = dnew0.as_chunks::<LANES>();
            let (dnew1, dnew1_rest) = dnew1.as_chunks::<LANES>();
            let (old0, old0_rest) = old0.as_chunks::<LANES>();
            let (old1, old1_rest) = old1.as_chunks::<LANES>();
            for (((dnew0, dnew1), old0), old1) in dnew0.iter().zip(dnew1).zip(old0).zip(old1) {
                for i in 0..LANES {
                    let apart = present[0] * dnew0[i] - present[1] * dnew1[i];
                    chains[i] += apart * (old0[i] - old1[i]);
                }
            }
            for (i, chain) in chains.iter_mut().enumerate().take(dnew0_rest.len()) {
                let apart = present[0] * dnew0_rest[i] - present[1] * dnew1_rest[i];
                *chain += apart * (old0_rest[i] - old1_rest[i]);
            }
            rho = total(chains);
        }
        [rho, present[0] * dot(dnew0, y), present[1] * dot(dnew1, y)]
    }
}
