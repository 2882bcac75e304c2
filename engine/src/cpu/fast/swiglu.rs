//! Fast twins of `shaders/swiglu.wgsl`.

use std::any::Any;

use super::math::{sigmoid, wide};
use super::threads::{for_each_pair, for_each_part, rows_per_piece};
use crate::cpu::{CpuArgs, params};
use crate::ops::swiglu::Params;

/// Float operations an element, exponential included.
const COST: usize = 16;

wide! {
    fn activate(gate: &[f32], up: &[f32], y: &mut [f32]) {
        for ((y, &gate), up) in y.iter_mut().zip(gate).zip(up) {
            *y = gate * sigmoid(gate) * up;
        }
    }
}

pub(super) fn forward(p: &dyn Any, [gate, up, y, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (gate, up, y) = (gate.read(), up.read(), y.write());
    let len = rows_per_piece(COST);
    for_each_part(&mut y[..p.len as usize], len, |piece, y| {
        let at = piece * len;
        activate(&gate[at..], &up[at..], y);
    });
}

wide! {
    fn differentiate(
        gate: &[f32],
        up: &[f32],
        dy: &[f32],
        d_gate: &mut [f32],
        d_up: &mut [f32],
        add_gate: bool,
        add_up: bool,
    ) {
        // Exact also for infinite old values: they are selected, not multiplied.
        let old = |add: bool, value: f32| if add { value } else { 0.0 };
        let inputs = gate.iter().zip(up).zip(dy);
        for (((&gate, up), dy), (d_gate, d_up)) in inputs.zip(d_gate.iter_mut().zip(d_up)) {
            let s = sigmoid(gate);
            let slope = s * (1.0 + gate * (1.0 - s));
            *d_gate = old(add_gate, *d_gate) + dy * up * slope;
            *d_up = old(add_up, *d_up) + dy * gate * s;
        }
    }
}

pub(super) fn backward(p: &dyn Any, [gate, up, dy, d_gate, d_up, ..]: CpuArgs<'_, f32>) {
    let p: &Params = params(p);
    let (gate, up, dy) = (gate.read(), up.read(), dy.read());
    let (d_gate, d_up) = (d_gate.write(), d_up.write());
    let len = rows_per_piece(COST + 8);
    let elements = p.len as usize;
    let outputs = ((&mut d_gate[..elements], len), (&mut d_up[..elements], len));
    for_each_pair(outputs.0, outputs.1, |piece, d_gate, d_up| {
        let at = piece * len;
        let (add_gate, add_up) = (p.add_gate != 0, p.add_up != 0);
        differentiate(
            &gate[at..],
            &up[at..],
            &dy[at..],
            d_gate,
            d_up,
            add_gate,
            add_up,
        );
    });
}
