//! The `feed_forward` object of `config.json` and the `[feed_forward]` table of a run's TOML: same keys, same values.
//!
//! Section 2.2 of the checkpoint format. Unknown keys are refused.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// What stands in the feed-forward sublayers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum FeedForwardConfig {
    /// `down(silu(gate(x)) * up(x))`, of the model's own `intermediate_size`.
    Swiglu {},
    /// Mixture of experts; the model's own `intermediate_size` is ignored.
    Moe(MoeConfig),
}

/// A sparse mixture of experts (section 5 of the checkpoint format).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoeConfig {
    /// Number of routed experts.
    #[serde(default = "eight")]
    pub experts: u32,
    /// How many of them each token uses.
    #[serde(default = "two")]
    pub top_k: u32,
    /// How experts are selected and weighted.
    #[serde(default)]
    pub gate: ExpertGate,
    /// Experts that every token uses, with weight 1.
    #[serde(default)]
    pub shared_experts: u32,
    /// Hidden width of each expert, routed or shared.
    pub intermediate_size: u32,
    /// Coefficient of the balance loss; 0 switches it off.
    #[serde(default = "hundredth")]
    pub aux_loss: f64,
    /// Coefficient of the router's z-loss; 0 switches it off.
    #[serde(default = "thousandth")]
    pub z_loss: f64,
    /// Factor of the routed experts' sum, `sigmoid_bias` only; above 0 there.
    #[serde(default = "two_and_a_half")]
    pub routed_scale: f64,
    /// Step of the selection bias, `sigmoid_bias` only.
    #[serde(default = "thousandth")]
    pub bias_update_rate: f64,
    /// How the experts are computed; the results agree up to rounding.
    #[serde(default)]
    pub compute: ExpertCompute,
}

/// How the experts of a mixture are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpertCompute {
    /// Tokens are sorted by expert, and each expert computes its own.
    #[default]
    Sorted,
    /// Every expert computes every token; `experts / top_k` times the work, ordinary matrix products only.
    Dense,
}

/// How experts are selected and weighted (section 5.1 of the format).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpertGate {
    /// Mode A: the largest softmax weights, as they are.
    SoftmaxTopk,
    /// Mode B: the largest softmax weights, scaled to sum to one.
    #[default]
    SoftmaxTopkRenorm,
    /// Mode C: sigmoid scores; a bias that is not trained balances the selection.
    SigmoidBias,
}

fn two() -> u32 {
    2
}
fn eight() -> u32 {
    8
}
fn hundredth() -> f64 {
    0.01
}
fn thousandth() -> f64 {
    0.001
}
fn two_and_a_half() -> f64 {
    2.5
}

impl Default for FeedForwardConfig {
    fn default() -> Self {
        Self::Swiglu {}
    }
}

impl FeedForwardConfig {
    /// All values of `kind`.
    pub const KINDS: [&str; 2] = ["swiglu", "moe"];

    /// The value of `kind`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Swiglu {} => "swiglu",
            Self::Moe(_) => "moe",
        }
    }

    /// Refuse values that cannot work.
    ///
    /// # Errors
    /// Names the field as a run's TOML writes it, and its range.
    pub fn validate(&self) -> Result<()> {
        let Self::Moe(moe) = self else {
            return Ok(());
        };
        moe.validate()
    }
}

impl MoeConfig {
    fn validate(&self) -> Result<()> {
        let Self {
            experts,
            top_k,
            gate,
            shared_experts,
            intermediate_size,
            aux_loss,
            z_loss,
            routed_scale,
            bias_update_rate,
            compute: _,
        } = *self;
        let refuse =
            |key: &str, message: String| Err(Error::config(format!("feed_forward.{key}"), message));
        if !(1..=256).contains(&experts) {
            return refuse(
                "experts",
                format!("is {experts}; it must be between 1 and 256"),
            );
        }
        if !(1..=experts).contains(&top_k) {
            return refuse(
                "top_k",
                format!("is {top_k}; it must be between 1 and the number of experts, {experts}"),
            );
        }
        if top_k == 1 && gate != ExpertGate::SoftmaxTopk {
            return refuse(
                "top_k",
                "is 1: with this gate the router would get no gradient; use 2 or more, or `gate = \"softmax_topk\"`"
                    .into(),
            );
        }
        if shared_experts > 64 {
            return refuse(
                "shared_experts",
                format!("is {shared_experts}; it must be between 0 and 64"),
            );
        }
        if !(1..=65_536).contains(&intermediate_size) {
            return refuse(
                "intermediate_size",
                format!("is {intermediate_size}; it must be between 1 and 65536"),
            );
        }
        for (key, value) in [
            ("aux_loss", aux_loss),
            ("z_loss", z_loss),
            ("routed_scale", routed_scale),
            ("bias_update_rate", bias_update_rate),
        ] {
            if !value.is_finite() || value < 0.0 {
                return refuse(
                    key,
                    format!("is {value}; it must be a finite number, 0 or more"),
                );
            }
        }
        // In 32-bit floats; the gradient of the router divides by it.
        if gate == ExpertGate::SigmoidBias && routed_scale < f64::from(f32::MIN_POSITIVE) {
            return refuse(
                "routed_scale",
                format!(
                    "is {routed_scale}: with `gate = \"sigmoid_bias\"` the routed experts would be multiplied by 0; use a \
                     number above 0, as 1 or 2.5"
                ),
            );
        }
        Ok(())
    }
}
