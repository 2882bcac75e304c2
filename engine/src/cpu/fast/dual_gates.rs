//! Fast twins of `shaders/dual_gates.wgsl`: rows in parallel, sums in vectors.
//!
//! Both streams go through the same functions, so that exchanging them changes no bit here either.

use std::any::Any;

use super::math::{dot, wide};
use super::threads::{for_each_part, for_each_triple, rows_per_piece};
use crate::cpu::{CpuArgs, Real, params};
use crate::ops::dual_gates::{NONE, Params};

/// Row `stream` of a weight, if there is one.
#[inline(always)]
fn weight<'a>(p: &Params, span: &'a [f32], offset: u32, stream: usize) -> Option<&'a [f32]> {
    let dim = p.dim as usize;
    (offset != NONE).then(|| &span[offset as usize + stream * dim..][..dim])
}

pub(super) fn forward(p: &dyn Any, [h0, h1, span, x, gates, r, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (h, span) = ([h0.read(), h1.read()], span.read());
    let dim = p.dim as usize;
    let rows = rows_per_piece(dim * 20);
    for_each_triple(
        (x.write(), rows * dim),
        (gates.write(), rows * 5),
        (r.write(), rows * 2),
        |piece, x, gates, r| {
            let outputs = x.chunks_exact_mut(dim).zip(gates.chunks_exact_mut(5));
            for (row, ((x, gates), r)) in outputs.zip(r.chunks_exact_mut(2)).enumerate() {
                let start = (piece * rows + row) * dim;
                forward_row(p, span, h.map(|h| &h[start..][..dim]), x, gates, r);
            }
        },
    );
}

wide! {
    fn forward_row(
        p: &Params,
        span: &[f32],
        h: [&[f32]; 2],
        x: &mut [f32],
        gates: &mut [f32],
        r: &mut [f32],
    ) {
        let mut along = [[0.0; 2]; 3];
        for stream in 0..2 {
            let h = h[stream];
            r[stream] = 1.0 / (dot(h, h) / p.dim as f32 + p.eps as f32).sqrt();
            for (along, offset) in along.iter_mut().zip([p.alpha_weight, p.rho_weight, p.beta_weight]) {
                if let Some(weight) = weight(p, span, offset, stream) {
                    along[stream] = r[stream] * dot(weight, h);
                }
            }
        }
        let [alpha, rho, beta] = along;
        let bias = |offset: u32, stream: usize| span[offset as usize + stream];
        let a = [bias(p.alpha_bias, 0) + alpha[0], bias(p.alpha_bias, 1) + alpha[1]];
        let others = if p.sigmoid == 0 { [a[1], a[0]] } else { [0.0; 2] };
        gates[0] = (a[0] - others[0]).sigmoid();
        gates[1] = (a[1] - others[1]).sigmoid();
        gates[2..].fill(0.0);
        if p.rho_bias != NONE {
            gates[2] = (bias(p.rho_bias, 0) + (rho[0] + rho[1])).sigmoid();
            gates[3] = 2.0 * (bias(p.beta_bias, 0) + beta[0]).sigmoid();
            gates[4] = 2.0 * (bias(p.beta_bias, 1) + beta[1]).sigmoid();
        }
        let (alpha0, alpha1) = (gates[0], gates[1]);
        for ((x, h0), h1) in x.iter_mut().zip(h[0]).zip(h[1]) {
            *x = alpha0 * h0 + alpha1 * h1;
        }
    }
}

pub(super) fn backward_logits(
    p: &dyn Any,
    [h0, h1, gates, dx, dgates, dlogits, ..]: CpuArgs<'_, f32>,
) {
    let p: &Params = params(p);
    let (h, gates) = ([h0.read(), h1.read()], gates.read());
    let (dx, dgates) = (dx.read(), dgates.read());
    let dim = p.dim as usize;
    let rows = rows_per_piece(dim * 4);
    for_each_part(dlogits.write(), rows * 5, |piece, dlogits| {
        for (row, dlogits) in dlogits.chunks_exact_mut(5).enumerate() {
            let row = piece * rows + row;
            let mut d = [0.0; 5];
            if p.has_dx != 0 {
                let own = row * dim..(row + 1) * dim;
                let dx = &dx[own.clone()];
                d[0] = wide_dot(dx, &h[0][own.clone()]);
                d[1] = wide_dot(dx, &h[1][own]);
            }
            if p.has_dgates != 0 {
                d.iter_mut()
                    .zip(&dgates[row * 5..])
                    .for_each(|(d, more)| *d += more);
            }
            let gates = &gates[row * 5..][..5];
            if p.sigmoid == 0 {
                let both = gates[0] * gates[1];
                dlogits[0] = both * (d[0] - d[1]);
                dlogits[1] = both * (d[1] - d[0]);
            } else {
                dlogits[0] = gates[0] * (1.0 - gates[0]) * d[0];
                dlogits[1] = gates[1] * (1.0 - gates[1]) * d[1];
            }
            dlogits[2] = gates[2] * (1.0 - gates[2]) * d[2];
            dlogits[3] = gates[3] * (1.0 - 0.5 * gates[3]) * d[3];
            dlogits[4] = gates[4] * (1.0 - 0.5 * gates[4]) * d[4];
        }
    });
}

wide! {
    fn wide_dot(a: &[f32], b: &[f32]) -> f32 {
        dot(a, b)
    }
}

pub(super) fn backward(p: &dyn Any, [h, dx, span, gates, r, dlogits, dh, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (h, dx, span, gates) = (h.read(), dx.read(), span.read(), gates.read());
    let (r, dlogits) = (r.read(), dlogits.read());
    let (dim, stream) = (p.dim as usize, p.stream as usize);
    let weights =
        [p.alpha_weight, p.rho_weight, p.beta_weight].map(|offset| weight(p, span, offset, stream));
    let rows = rows_per_piece(dim * 16);
    for_each_part(dh.write(), rows * dim, |piece, dh| {
        for (row, dh) in dh.chunks_exact_mut(dim).enumerate() {
            let row = piece * rows + row;
            let own = row * dim..(row + 1) * dim;
            let logits = [stream, 2, 3 + stream].map(|logit| dlogits[row * 5 + logit]);
            let direct = if p.has_dx == 0 {
                0.0
            } else {
                gates[row * 5 + stream]
            };
            let (h, dx) = (&h[own.clone()], &dx[own]);
            backward_row(
                h,
                dx,
                &weights,
                logits,
                direct,
                r[row * 2 + stream],
                p.add != 0,
                dh,
            );
        }
    });
}

wide! {
    #[expect(clippy::too_many_arguments, reason = "everything that one row depends on")]
    fn backward_row(
        h: &[f32],
        dx: &[f32],
        weights: &[Option<&[f32]>; 3],
        logits: [f32; 3],
        direct: f32,
        scale: f32,
        add: bool,
        dh: &mut [f32],
    ) {
        // An absent weight is replaced by h with the factor 0.
        let [w0, w1, w2] = [weights[0].unwrap_or(h), weights[1].unwrap_or(h), weights[2].unwrap_or(h)];
        let factor = |k: usize| if weights[k].is_some() { logits[k] } else { 0.0 };
        let (d0, d1, d2) = (factor(0), factor(1), factor(2));
        let along = d0 * dot(w0, h) + d1 * dot(w1, h) + d2 * dot(w2, h);
        let pull = along * scale * scale / h.len() as f32;
        let inputs = h.iter().zip(dx).zip(w0.iter().zip(w1).zip(w2));
        if add {
            for (dh, ((h, dx), ((w0, w1), w2))) in dh.iter_mut().zip(inputs) {
                *dh += direct * dx + scale * (d0 * w0 + d1 * w1 + d2 * w2 - h * pull);
            }
        } else {
            for (dh, ((h, dx), ((w0, w1), w2))) in dh.iter_mut().zip(inputs) {
                *dh = direct * dx + scale * (d0 * w0 + d1 * w1 + d2 * w2 - h * pull);
            }
        }
    }
}

pub(super) fn backward_params(p: &dyn Any, [h0, h1, r, dlogits, partial, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (h, r, dlogits) = ([h0.read(), h1.read()], r.read(), dlogits.read());
    let (rows, dim, chunk) = (p.rows as usize, p.dim as usize, p.chunk as usize);
    // Columns of absent parameters are filled as well: nobody reads them.
    for_each_part(partial.write(), p.columns as usize, |block, sums| {
        sums.fill(0.0);
        let (biases, weights) = sums.split_at_mut(5);
        for row in block * chunk..((block + 1) * chunk).min(rows) {
            let dlogits = &dlogits[row * 5..][..5];
            biases
                .iter_mut()
                .zip(dlogits)
                .for_each(|(sum, d)| *sum += d);
            // alpha_weight, rho_weight, beta_weight: which logit each row of them belongs to
            let logits = [0, 1, 2, 2, 3, 4];
            for (number, sums) in weights.chunks_exact_mut(dim).enumerate() {
                let stream = number % 2;
                let factor = dlogits[logits[number]] * r[row * 2 + stream];
                add_scaled(sums, factor, &h[stream][row * dim..][..dim]);
            }
        }
    });
}

wide! {
    fn add_scaled(sums: &mut [f32], factor: f32, values: &[f32]) {
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += factor * value);
    }
}

pub(super) fn backward_params_sum(p: &dyn Any, [partial, dspan, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (partial, dspan) = (partial.read(), dspan.write());
    let (columns, both) = (p.columns as usize, 2 * p.dim as usize);
    // First column, number of columns and place of each parameter.
    let parameters = [
        (0, 2, p.alpha_bias),
        (2, 1, p.rho_bias),
        (3, 2, p.beta_bias),
        (5, both, p.alpha_weight),
        (5 + both, both, p.rho_weight),
        (5 + 2 * both, both, p.beta_weight),
    ];
    for block in partial.chunks_exact(columns) {
        for (first, count, offset) in parameters {
            if offset != NONE {
                add_scaled(&mut dspan[offset as usize..][..count], 1.0, &block[first..]);
            }
        }
    }
}
