//! Fast twin of `shaders/adamw.wgsl`: vector code over pieces of the arena.

use std::any::Any;

use super::math::wide;
use super::threads::for_each_triple;
use crate::cpu::{CpuArgs, params};
use crate::optim::adamw::Params;
use crate::optim::{STATUS_SCALE, STATUS_STOPPED};

/// Elements of a piece.
const PIECE: usize = 8_192;

/// The numbers of a step, in `f32`.
#[derive(Clone, Copy)]
struct Step {
    scale: f32,
    rate: f32,
    beta1: f32,
    rest1: f32,
    beta2: f32,
    rest2: f32,
    correction1: f32,
    correction2: f32,
    eps: f32,
    decay: f32,
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "this executor computes in f32"
)]
pub(super) fn update(params_: &dyn Any, [scalars, status, dp, p, m, v, ..]: CpuArgs<'_, f32>) {
    let c: &Params = params(params_);
    let (scalars, status, dp) = (scalars.read(), status.read(), dp.read());
    if status[STATUS_STOPPED] != 0.0 {
        return;
    }
    let step = Step {
        scale: status[STATUS_SCALE],
        rate: scalars[0] * c.lr_mult as f32,
        beta1: c.beta1 as f32,
        rest1: c.rest1 as f32,
        beta2: c.beta2 as f32,
        rest2: c.rest2 as f32,
        correction1: scalars[1],
        correction2: scalars[2],
        eps: c.eps as f32,
        decay: c.decay as f32,
    };
    for_each_triple(
        (p.write(), PIECE),
        (m.write(), PIECE),
        (v.write(), PIECE),
        |piece, p, m, v| update_piece(&step, &dp[piece * PIECE..][..p.len()], p, m, v),
    );
}

wide! {
    fn update_piece(s: &Step, dp: &[f32], p: &mut [f32], m: &mut [f32], v: &mut [f32]) {
        let s = *s;
        for (((dp, p), m), v) in dp.iter().zip(p).zip(m).zip(v) {
            let g = s.scale * dp;
            *m = s.beta1 * *m + s.rest1 * g;
            *v = s.beta2 * *v + s.rest2 * g * g;
            let decayed = *p - s.rate * s.decay * *p;
            let (m_hat, v_hat) = (*m / s.correction1, *v / s.correction2);
            *p = decayed - s.rate * m_hat / (v_hat.sqrt() + s.eps);
        }
    }
}
