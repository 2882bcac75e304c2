//! Twins of `shaders/dual_gates.wgsl`.

use std::any::Any;

use super::{CpuArgs, Real, params};
use crate::ops::dual_gates::{NONE, Params};

/// Row `stream` of a weight, if there is one.
fn weight<'a, T>(p: &Params, span: &'a [T], offset: u32, stream: usize) -> Option<&'a [T]> {
    let dim = p.dim as usize;
    (offset != NONE).then(|| &span[offset as usize + stream * dim..][..dim])
}

pub(super) fn forward<T: Real>(p: &dyn Any, [h0, h1, span, x, gates, r, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (h, span) = ([h0.read(), h1.read()], span.read());
    let (x, gates, r) = (x.write(), gates.write(), r.write());
    let dim = p.dim as usize;
    for row in 0..p.rows as usize {
        let h = h.map(|h| &h[row * dim..][..dim]);
        for stream in 0..2 {
            let squares: T = h[stream].iter().map(|&v| v * v).sum();
            r[row * 2 + stream] = T::one() / (squares / T::of(dim as f64) + T::of(p.eps)).sqrt();
        }
        // <weight, f> of one stream
        let along = |offset: u32, stream: usize| match weight(p, span, offset, stream) {
            Some(weight) => {
                r[row * 2 + stream]
                    * weight
                        .iter()
                        .zip(h[stream])
                        .map(|(&w, &h)| w * h)
                        .sum::<T>()
            }
            None => T::zero(),
        };
        let bias = |offset: u32, stream: usize| span[offset as usize + stream];
        let a = [0, 1].map(|j| bias(p.alpha_bias, j) + along(p.alpha_weight, j));
        let alpha = if p.sigmoid == 0 {
            [(a[0] - a[1]).sigmoid(), (a[1] - a[0]).sigmoid()]
        } else {
            a.map(Real::sigmoid)
        };
        let (mut rho, mut beta) = (T::zero(), [T::zero(); 2]);
        if p.rho_bias != NONE {
            let both = along(p.rho_weight, 0) + along(p.rho_weight, 1);
            rho = (bias(p.rho_bias, 0) + both).sigmoid();
            beta = [0, 1]
                .map(|j| T::of(2.0) * (bias(p.beta_bias, j) + along(p.beta_weight, j)).sigmoid());
        }
        gates[row * 5..][..5].copy_from_slice(&[alpha[0], alpha[1], rho, beta[0], beta[1]]);
        for i in 0..dim {
            x[row * dim + i] = alpha[0] * h[0][i] + alpha[1] * h[1][i];
        }
    }
}

pub(super) fn backward_logits<T: Real>(
    p: &dyn Any,
    [h0, h1, gates, dx, dgates, dlogits, ..]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let (h, gates) = ([h0.read(), h1.read()], gates.read());
    let (dx, dgates, dlogits) = (dx.read(), dgates.read(), dlogits.write());
    let dim = p.dim as usize;
    for row in 0..p.rows as usize {
        let mut d = [T::zero(); 5];
        if p.has_dx != 0 {
            for (d, h) in d.iter_mut().zip(h) {
                *d = (row * dim..(row + 1) * dim).map(|at| dx[at] * h[at]).sum();
            }
        }
        if p.has_dgates != 0 {
            for (d, &more) in d.iter_mut().zip(&dgates[row * 5..]) {
                *d += more;
            }
        }
        let gates = &gates[row * 5..][..5];
        let (one, half) = (T::one(), T::of(0.5));
        let through = |gate: T| gate * (one - gate);
        let alpha = if p.sigmoid == 0 {
            let both = gates[0] * gates[1];
            [both * (d[0] - d[1]), both * (d[1] - d[0])]
        } else {
            [through(gates[0]) * d[0], through(gates[1]) * d[1]]
        };
        let beta = [3, 4].map(|k| gates[k] * (one - half * gates[k]) * d[k]);
        let rho = through(gates[2]) * d[2];
        dlogits[row * 5..][..5].copy_from_slice(&[alpha[0], alpha[1], rho, beta[0], beta[1]]);
    }
}

pub(super) fn backward<T: Real>(
    p: &dyn Any,
    [h, dx, span, gates, r, dlogits, dh, ..]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let (h, dx, span, gates) = (h.read(), dx.read(), span.read(), gates.read());
    let (r, dlogits, dh) = (r.read(), dlogits.read(), dh.write());
    let (dim, stream) = (p.dim as usize, p.stream as usize);
    // Each weight of this stream, and the logit that it belongs to.
    let weights = [
        (p.alpha_weight, stream),
        (p.rho_weight, 2),
        (p.beta_weight, 3 + stream),
    ]
    .map(|(offset, logit)| (weight(p, span, offset, stream), logit));
    for row in 0..p.rows as usize {
        let at = row * dim;
        let feature_gradient = |i: usize| -> T {
            let terms = weights.iter().filter_map(|&(weight, logit)| {
                weight.map(|weight| dlogits[row * 5 + logit] * weight[i])
            });
            terms.sum()
        };
        let along: T = (0..dim).map(|i| feature_gradient(i) * h[at + i]).sum();
        let scale = r[row * 2 + stream];
        for i in 0..dim {
            let old = if p.add == 0 { T::zero() } else { dh[at + i] };
            let direct = if p.has_dx == 0 {
                T::zero()
            } else {
                gates[row * 5 + stream] * dx[at + i]
            };
            let pull = h[at + i] * along * scale * scale / T::of(dim as f64);
            dh[at + i] = old + (direct + scale * (feature_gradient(i) - pull));
        }
    }
}

/// What a column of `backward_params` is the gradient of: its offset in the span (`None`: no such parameter), its logit,
/// and for weights the stream and the element of the feature.
fn column_of(p: &Params, column: usize) -> (Option<usize>, usize, Option<(usize, usize)>) {
    let dim = p.dim as usize;
    let place = |offset: u32, within: usize| (offset != NONE).then(|| offset as usize + within);
    match column {
        0 | 1 => (place(p.alpha_bias, column), column, None),
        2 => (place(p.rho_bias, 0), 2, None),
        3 | 4 => (place(p.beta_bias, column - 3), column, None),
        _ => {
            let within = (column - 5) % (2 * dim);
            let (stream, i) = (within / dim, within % dim);
            let (offset, logit) = match (column - 5) / (2 * dim) {
                0 => (p.alpha_weight, stream),
                1 => (p.rho_weight, 2),
                _ => (p.beta_weight, 3 + stream),
            };
            (place(offset, within), logit, Some((stream, i)))
        }
    }
}

pub(super) fn backward_params<T: Real>(
    p: &dyn Any,
    [h0, h1, r, dlogits, partial, ..]: CpuArgs<'_, T>,
) {
    let p: &Params = params(p);
    let (h, r, dlogits) = ([h0.read(), h1.read()], r.read(), dlogits.read());
    let (rows, dim, chunk) = (p.rows as usize, p.dim as usize, p.chunk as usize);
    let columns = p.columns as usize;
    for (block, sums) in partial.write().chunks_exact_mut(columns).enumerate() {
        for (column, sum) in sums.iter_mut().enumerate() {
            let (Some(_), logit, feature) = column_of(p, column) else {
                continue;
            };
            let rows = block * chunk..((block + 1) * chunk).min(rows);
            *sum = rows
                .map(|row| {
                    dlogits[row * 5 + logit]
                        * feature.map_or(T::one(), |(stream, i)| {
                            r[row * 2 + stream] * h[stream][row * dim + i]
                        })
                })
                .sum();
        }
    }
}

pub(super) fn backward_params_sum<T: Real>(p: &dyn Any, [partial, dspan, ..]: CpuArgs<'_, T>) {
    let p: &Params = params(p);
    let (partial, dspan) = (partial.read(), dspan.write());
    let columns = p.columns as usize;
    for column in 0..columns {
        if let (Some(offset), ..) = column_of(p, column) {
            for block in 0..p.rows.div_ceil(p.chunk) as usize {
                dspan[offset] += partial[block * columns + column];
            }
        }
    }
}
