//! Each expert computes its own tokens: they are sorted by expert, go through products of one matrix a tile of rows, and
//! are added up per token in the order of its slots (section 5.4 of the notes on residual mechanisms).

use super::expert;
use crate::error::Result;
use crate::nn::feed_forward::MoeConfig;
use crate::ops::expert_rows::{combine, gather};
use crate::ops::expert_sort::{Sorted, expert_sort};
use crate::ops::grouped_matmul::grouped_linear;
use crate::ops::router::Routes;
use crate::ops::swiglu::swiglu;
use crate::tape::{Tape, Tensor};

/// The routed experts' part of `y` for `x` `[rows, d]`.
pub(super) fn forward(
    tape: &mut Tape,
    moe: &MoeConfig,
    layer: u32,
    x: Tensor,
    routes: Routes,
) -> Result<Tensor> {
    let sorted = expert_sort(tape, routes.chosen, moe.experts)?;
    let project = |tape: &mut Tape, name: &str, x: Tensor, sorted: &Sorted| {
        let weights = (0..moe.experts)
            .map(|number| tape.parameter(&format!("{}{name}.weight", expert(layer, number))))
            .collect::<Result<Vec<_>>>()?;
        grouped_linear(tape, x, &weights, sorted)
    };
    let rows = gather(tape, x, &sorted)?;
    let gate = project(tape, "gate_proj", rows, &sorted)?;
    let up = project(tape, "up_proj", rows, &sorted)?;
    let hidden = swiglu(tape, gate, up)?;
    let u = project(tape, "down_proj", hidden, &sorted)?;
    combine(tape, u, routes.gates, &sorted)
}
