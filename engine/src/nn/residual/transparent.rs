//! Transparent attention for a decoder: every layer reads a convex mix of all earlier layer outputs (after arXiv 1808.07561;
//! section 4.10 of the checkpoint format).
//!
//! ```text
//! X_0 = e,   X_i = layer_(i-1)(Y_i),   Y_i = sum_j a_i[j] X_j over j < i,   out = Y_(N+1)
//! a_i = softmax(logits_i)  (learned)   |   1/i  (mean)
//! ```
//!
//! The weights are the same for all tokens. The paper mixes encoder layers for the decoder of a translation model; no source
//! defines a form without an encoder, so this one is ours.

use super::about::About;
use super::config::{TransparentInit, TransparentWeights};
use super::path::{ResidualPath, Routing, Weighting};
use super::states::States;
use super::whole_layers::WholeLayers;
use crate::error::Result;
use crate::models::config::ModelConfig;
use crate::ops::softmax::softmax;
use crate::params::{Init, ParamSpec};
use crate::tape::{Tape, Tensor};

/// For `braid list` and the window.
pub const ABOUT: About = About {
    summary: "softmax weights over the outputs of whole layers, the same for all tokens",
    paper: "Training Deeper Neural Machine Translation Models with Transparent Attention, arXiv 1808.07561",
    equations: "\
X_0 = e,   X_i = layer_(i-1)(Y_i),   out = Y_(N+1)
Y_i = sum_j a_i[j] X_j  over j = 0 .. i-1
a_i = softmax(logits_i) (learned),  1/i (mean)",
    choices: &[
        "No paper defines a form for a model without an encoder: every layer reads a mix, as in DenseFormer.",
        "The paper starts with equal weights (`uniform`); `recent` starts near the standard model, not at it.",
        "There is no dropout on the weights, and the logits are not decayed.",
    ],
};

/// Logit of the newest layer output with `recent`: of twelve sources it then weighs 0.973.
const RECENT: f64 = 6.0;

/// Logits of mix `i`, which has `i` sources.
fn name(config: &ModelConfig, i: u32) -> String {
    if i > config.num_hidden_layers {
        return "model.final_depth_logits".into();
    }
    format!("model.layers.{}.depth_logits", i - 1)
}

/// `model.layers.{i}.depth_logits` `[i + 1]` and `model.final_depth_logits` `[N + 1]`; none with `mean`.
#[must_use]
pub fn parameters(
    config: &ModelConfig,
    init: TransparentInit,
    weights: TransparentWeights,
) -> Vec<ParamSpec> {
    if weights == TransparentWeights::Mean {
        return Vec::new();
    }
    (1..=config.num_hidden_layers + 1)
        .map(|i| {
            let mut start = vec![0.0; i as usize];
            if init == TransparentInit::Recent {
                start[i as usize - 1] = RECENT;
            }
            ParamSpec::routing(name(config, i), [i], Init::Values(start))
        })
        .collect()
}

/// State while recording.
#[derive(Debug)]
pub struct Transparent {
    config: ModelConfig,
    weights: TransparentWeights,
    layers: WholeLayers,
}

impl Transparent {
    /// A path over `rows` tokens.
    #[must_use]
    pub fn new(
        tape: &mut Tape,
        config: &ModelConfig,
        weights: TransparentWeights,
        rows: u32,
    ) -> Self {
        Self {
            config: config.clone(),
            weights,
            layers: WholeLayers::new(tape, config, rows),
        }
    }
}

impl ResidualPath for Transparent {
    fn expand(&mut self, tape: &mut Tape, e: Tensor) -> Result<()> {
        self.layers.expand(tape, e)
    }

    fn read(&mut self, tape: &mut Tape, site: u32) -> Result<Tensor> {
        self.layers.visit(tape, site)?;
        if site.is_multiple_of(2) {
            let i = site / 2 + 1;
            let weights = match self.weights {
                TransparentWeights::Learned => {
                    let logits = tape.parameter(&name(&self.config, i))?;
                    softmax(tape, logits)?
                }
                TransparentWeights::Mean => {
                    tape.constant("equal weights", [i], vec![1.0 / f64::from(i); i as usize])
                }
            };
            let sources: Vec<usize> = (0..i as usize).collect();
            self.layers
                .mix(tape, site, &sources, weights, Weighting::Softmax)?;
        }
        self.layers.stream()
    }

    fn write(&mut self, tape: &mut Tape, site: u32, y: Tensor) -> Result<()> {
        self.layers.write(tape, site, y)
    }

    fn readout(&mut self, tape: &mut Tape) -> Result<Tensor> {
        self.read(tape, self.config.sublayers())
    }

    fn routing(&self) -> &[Routing] {
        &self.layers.routing
    }

    fn states(&self) -> &States {
        &self.layers.states
    }
}
