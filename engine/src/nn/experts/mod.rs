//! Sparse mixture of experts: a feed-forward sublayer of which each token uses a few parts (section 5 of the checkpoint
//! format).
//!
//! ```text
//! z = W_g x;  y = sum over the selected experts of gate_e U_e(x)  +  sum over the shared experts of U(x)
//! ```
//!
//! Every `U` is a SwiGLU. Nothing is dropped. Selection and gates: [`crate::ops::router`]; losses that keep the use of experts
//! even: [`crate::ops::router_loss`]; the selection bias: [`crate::optim::expert_bias`].

mod dense;
mod sorted;

use super::{Batch, swiglu};
use crate::error::Result;
use crate::models::config::{ExpertCompute, ExpertGate, ModelConfig};
use crate::nn::feed_forward::MoeConfig;
use crate::ops::add::add;
use crate::ops::matmul::linear;
use crate::ops::router::{Gates, router};
use crate::ops::router_loss::{RouterLoss, router_loss};
use crate::params::{Init, ParamSpec};
use crate::tape::{Tape, Tensor};

/// How the tokens of a batch were routed in one layer.
#[derive(Clone, Copy, Debug)]
pub struct Routed {
    /// The layer.
    pub layer: u32,
    /// Number of routed experts.
    pub experts: u32,
    logits: Tensor,
    chosen: Tensor,
}

impl Routed {
    /// Name of the published gates `[rows, experts]`.
    #[must_use]
    pub fn gates(&self) -> String {
        format!("moe.{}.gates", self.layer)
    }

    /// Name of the published statistics `[2, experts]`: tokens that chose an expert, and its mean probability.
    #[must_use]
    pub fn statistics(&self) -> String {
        format!("moe.{}.statistics", self.layer)
    }
}

/// The auxiliary losses of a model.
#[derive(Debug)]
pub struct Losses {
    /// Balance losses of all layers `[1]`, coefficient included.
    pub balance: Tensor,
    /// z-losses of all layers `[1]`, coefficient included.
    pub z: Tensor,
    /// `[2, experts]` of each layer, as in [`Routed::statistics`].
    pub statistics: Vec<Tensor>,
}

fn prefix(layer: u32) -> String {
    format!("model.layers.{layer}.mlp.")
}

fn expert(layer: u32, expert: u32) -> String {
    format!("{}experts.{expert}.", prefix(layer))
}

/// Name of the selection bias of a layer.
#[must_use]
pub fn selection_bias(layer: u32) -> String {
    format!("{}gate.e_score_correction_bias", prefix(layer))
}

/// Parameters of layer `layer`.
///
/// The first projections of all experts come one after the other, then the second, then the third: in the arena, each lot
/// is one range in which the next expert is always as far away.
#[must_use]
pub fn parameters(config: &ModelConfig, moe: &MoeConfig, layer: u32) -> Vec<ParamSpec> {
    let (d, width) = (config.hidden_size, moe.intermediate_size);
    let mut specs = vec![ParamSpec::base(
        format!("{}gate.weight", prefix(layer)),
        [moe.experts, d],
        Init::Normal(config.initializer_range),
        true,
    )];
    let experts: Vec<Vec<ParamSpec>> = (0..moe.experts)
        .map(|number| swiglu::parameters(config, &expert(layer, number), width))
        .collect();
    for projection in 0..experts[0].len() {
        specs.extend(experts.iter().map(|specs| specs[projection].clone()));
    }
    for number in 0..moe.shared_experts {
        let prefix = format!("{}shared_experts.{number}.", prefix(layer));
        specs.extend(swiglu::parameters(config, &prefix, width));
    }
    if moe.gate == ExpertGate::SigmoidBias {
        specs.push(ParamSpec::untrained(
            selection_bias(layer),
            [moe.experts],
            Init::Constant(0.0),
        ));
    }
    specs
}

/// `x` `[rows, d]`, already normalised, to `[rows, d]`.
///
/// # Errors
/// If a parameter is missing or a kernel call is malformed.
pub fn forward(
    tape: &mut Tape,
    moe: &MoeConfig,
    layer: u32,
    x: Tensor,
) -> Result<(Tensor, Routed)> {
    let weight = tape.parameter(&format!("{}gate.weight", prefix(layer)))?;
    let logits = linear(tape, x, weight)?;
    let how = match moe.gate {
        ExpertGate::SoftmaxTopk => Gates::Softmax,
        ExpertGate::SoftmaxTopkRenorm => Gates::SoftmaxOfSelected,
        ExpertGate::SigmoidBias => Gates::Sigmoid {
            bias: tape.parameter(&selection_bias(layer))?,
            scale: moe.routed_scale,
        },
    };
    let routes = router(tape, logits, moe.top_k, how)?;
    let mut y = match moe.compute {
        ExpertCompute::Sorted => sorted::forward(tape, moe, layer, x, routes)?,
        ExpertCompute::Dense => dense::forward(tape, moe, layer, x, routes.gates)?,
    };
    for number in 0..moe.shared_experts {
        let prefix = format!("{}shared_experts.{number}.", prefix(layer));
        let u = swiglu::forward(tape, &prefix, x)?;
        y = add(tape, y, u)?;
    }
    let routed = Routed {
        layer,
        experts: moe.experts,
        logits,
        chosen: routes.chosen,
    };
    tape.watch(|| routed.gates(), routes.gates);
    Ok((y, routed))
}

/// The auxiliary losses over all layers, times `scale`: 1 divided by the number of passes of a step. `None` without experts.
///
/// # Errors
/// If a kernel call is malformed.
pub fn losses(
    tape: &mut Tape,
    moe: &MoeConfig,
    batch: Batch,
    layers: &[Routed],
    scale: f64,
) -> Result<Option<Losses>> {
    let mut sum: Option<Losses> = None;
    let sequence_loss = moe.gate == ExpertGate::SigmoidBias;
    let how = RouterLoss {
        span: if sequence_loss {
            batch.context
        } else {
            batch.rows()
        },
        sigmoid: sequence_loss,
        balance: scale * moe.aux_loss,
        z: scale * moe.z_loss,
    };
    for routed in layers {
        let scope = format!("layer {} router", routed.layer + 1);
        let one = tape.scope(&scope, |tape| {
            router_loss(tape, routed.logits, routed.chosen, &how)
        })?;
        tape.watch(|| routed.statistics(), one.statistics);
        sum = Some(match sum {
            None => Losses {
                balance: one.balance,
                z: one.z,
                statistics: vec![one.statistics],
            },
            Some(mut sum) => {
                sum.statistics.push(one.statistics);
                Losses {
                    balance: add(tape, sum.balance, one.balance)?,
                    z: add(tape, sum.z, one.z)?,
                    ..sum
                }
            }
        });
    }
    Ok(sum)
}
