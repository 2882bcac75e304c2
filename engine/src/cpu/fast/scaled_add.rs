//! Fast twins of `shaders/scaled_add.wgsl`.

use std::any::Any;

use super::math::wide;
use super::threads::for_each_part;
use crate::cpu::{CpuArgs, params};
use crate::ops::scaled_add::Params;

/// Elements of a piece.
const PIECE: usize = 16_384;

pub(super) fn forward(_: &dyn Any, [h, o, scale, x, ..]: CpuArgs<'_, f32>) {
    let (h, o, scale) = (h.read(), o.read(), scale.read()[0]);
    for_each_part(x.write(), PIECE, |piece, x| {
        sum_of(x, &h[piece * PIECE..], &o[piece * PIECE..], scale);
    });
}

pub(super) fn backward_h(p: &dyn Any, [dx, dh, ..]: CpuArgs<'_, f32>) {
    put(dh.write(), dx.read(), 1.0, params::<Params>(p).add != 0);
}

pub(super) fn backward_o(p: &dyn Any, [dx, scale, d_o, ..]: CpuArgs<'_, f32>) {
    let add = params::<Params>(p).add != 0;
    put(d_o.write(), dx.read(), scale.read()[0], add);
}

pub(super) fn backward_scale(p: &dyn Any, [dx, o, partial, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (dx, o) = (&dx.read()[..p.len as usize], o.read());
    let partial = partial.write();
    partial.fill(0.0);
    let lines = dx.chunks(p.count as usize).zip(o.chunks(p.count as usize));
    lines.for_each(|(dx, o)| add_products(partial, dx, o));
}

fn put(to: &mut [f32], from: &[f32], scale: f32, add: bool) {
    for_each_part(to, PIECE, |piece, to| {
        let from = &from[piece * PIECE..];
        if add {
            add_scaled(to, from, scale);
        } else {
            store_scaled(to, from, scale);
        }
    });
}

wide! {
    fn sum_of(x: &mut [f32], h: &[f32], o: &[f32], scale: f32) {
        for ((x, h), o) in x.iter_mut().zip(h).zip(o) {
            *x = h + scale * o;
        }
    }
}

wide! {
    fn add_scaled(to: &mut [f32], from: &[f32], scale: f32) {
        to.iter_mut().zip(from).for_each(|(to, from)| *to += scale * from);
    }
}

wide! {
    fn store_scaled(to: &mut [f32], from: &[f32], scale: f32) {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = scale * from);
    }
}

wide! {
    fn add_products(sums: &mut [f32], a: &[f32], b: &[f32]) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
}
