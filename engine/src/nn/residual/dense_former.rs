//! Depth-weighted averages of layer outputs (arXiv 2402.02622; section 4.9 of the checkpoint format).
//!
//! ```text
//! X_0 = Y_0 = e,   X_i = layer_(i-1)(Y_(i-1)),   out = Y_N
//! Y_i = sum_t w_i[t] X_(S_i[t])   if period divides i,   else X_i
//! S_i = { j : 0 <= j <= i, dilation divides i - j },  in increasing order
//! ```
//!
//! A layer is attention and feed-forward with their residual adds. The weights are free numbers: no softmax, any sign, the
//! same for all tokens. At the start `w_i` is 1 for `X_i` and 0 for the others: the standard model, to the bit.

use super::about::About;
use super::path::{ResidualPath, Routing, Weighting};
use super::states::States;
use super::whole_layers::WholeLayers;
use crate::error::Result;
use crate::models::config::ModelConfig;
use crate::params::{Init, ParamSpec};
use crate::tape::{Tape, Tensor};

/// For `braid list` and the window.
pub const ABOUT: About = About {
    summary: "learned averages of the outputs of whole layers, the same for all tokens",
    paper: "DenseFormer, arXiv 2402.02622",
    equations: "\
X_0 = Y_0 = e,   X_i = layer_(i-1)(Y_(i-1)),   out = Y_N
Y_i = sum_t w_i[t] X_(S_i[t])  if period divides i,  else X_i
S_i = the j in 0 .. i with i - j divisible by dilation",
    choices: &[
        "The weights are not decayed. The paper is silent; the released code decays them, as it decays every matrix.",
    ],
};

/// `S_i`: the layer outputs that are averaged after layer `i`, 0 for the embedding.
#[must_use]
pub fn sources(i: u32, dilation: u32) -> Vec<usize> {
    (0..=i)
        .filter(|j| (i - j).is_multiple_of(dilation))
        .map(|j| j as usize)
        .collect()
}

fn name(i: u32) -> String {
    format!("model.layers.{}.dwa.weight", i - 1)
}

/// `model.layers.{i-1}.dwa.weight` `[n]` after every layer `i` that `period` divides: 0, the last entry 1.
#[must_use]
pub fn parameters(config: &ModelConfig, dilation: u32, period: u32) -> Vec<ParamSpec> {
    (1..=config.num_hidden_layers)
        .filter(|i| i.is_multiple_of(period))
        .map(|i| {
            let count = sources(i, dilation).len();
            let mut start = vec![0.0; count];
            start[count - 1] = 1.0;
            ParamSpec::routing(name(i), [count as u32], Init::Values(start))
        })
        .collect()
}

/// State while recording.
#[derive(Debug)]
pub struct DenseFormer {
    dilation: u32,
    period: u32,
    sublayers: u32,
    layers: WholeLayers,
}

impl DenseFormer {
    /// A path over `rows` tokens.
    #[must_use]
    pub fn new(
        tape: &mut Tape,
        config: &ModelConfig,
        dilation: u32,
        period: u32,
        rows: u32,
    ) -> Self {
        Self {
            dilation,
            period,
            sublayers: config.sublayers(),
            layers: WholeLayers::new(tape, config, rows),
        }
    }
}

impl ResidualPath for DenseFormer {
    fn expand(&mut self, tape: &mut Tape, e: Tensor) -> Result<()> {
        self.layers.expand(tape, e)
    }

    fn read(&mut self, tape: &mut Tape, site: u32) -> Result<Tensor> {
        self.layers.visit(tape, site)?;
        let i = site / 2;
        if site.is_multiple_of(2) && i > 0 && i.is_multiple_of(self.period) {
            let weights = tape.parameter(&name(i))?;
            let sources = sources(i, self.dilation);
            self.layers
                .mix(tape, site, &sources, weights, Weighting::Signed)?;
        }
        self.layers.stream()
    }

    fn write(&mut self, tape: &mut Tape, site: u32, y: Tensor) -> Result<()> {
        self.layers.write(tape, site, y)
    }

    fn readout(&mut self, tape: &mut Tape) -> Result<Tensor> {
        self.read(tape, self.sublayers)
    }

    fn routing(&self) -> &[Routing] {
        &self.layers.routing
    }

    fn states(&self) -> &States {
        &self.layers.states
    }
}
