//! Every expert computes every token, and the gates decide what counts: ordinary matrix products only, `experts / top_k` times
//! the necessary work. What the sorted form is held against.

use super::expert;
use crate::error::{Error, Result};
use crate::nn::feed_forward::MoeConfig;
use crate::nn::swiglu;
use crate::ops::gated_add::gated_add;
use crate::tape::{Tape, Tensor};

/// The routed experts' part of `y` for `x` `[rows, d]` and `gates` `[rows, experts]`.
pub(super) fn forward(
    tape: &mut Tape,
    moe: &MoeConfig,
    layer: u32,
    x: Tensor,
    gates: Tensor,
) -> Result<Tensor> {
    let mut sum = None;
    for number in 0..moe.experts {
        let u = swiglu::forward(tape, &expert(layer, number), x)?;
        sum = Some(gated_add(tape, sum, gates, number, u)?);
    }
    sum.ok_or_else(|| Error::Op {
        op: "experts",
        message: "there are none".into(),
    })
}
