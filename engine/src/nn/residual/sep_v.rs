//! Attention residuals with a value map per site (section 4.2 of the checkpoint format).
//!
//! ```text
//! sources, weights and blocks as in `attn_res`
//! x_s = W_s sum_i a_i v_i,   out = W_L (the same at the read-out)
//! ```
//!
//! A control arm of the DAR paper. Mapping the sum is mapping every value, with one product in place of `n`. The maps start
//! as the identity, so the model starts as `attn_res`.

use super::about::About;
use super::attn_res::{AttnRes, query_and_norm};
use super::config::AttnResConfig;
use super::path::{ResidualPath, Routing, site_prefix};
use super::states::States;
use crate::error::Result;
use crate::models::config::ModelConfig;
use crate::ops::matmul::linear;
use crate::params::{Init, ParamSpec};
use crate::tape::{Tape, Tensor};

/// For `braid list` and the window.
pub const ABOUT: About = About {
    summary: "attention residuals whose sum passes a learned matrix at every site",
    paper: "a control arm of Dual Attention Residuals, arXiv 2607.18730",
    equations: "\
x_s = W_s sum_i a_i v_i,   a = softmax_i <q_s * g_s, rms(v_i)>
v   = e, the finished blocks, the partial sum P of the current block
P  <- P + F_s(x_s);  after S sublayers P is a finished block
out = the same mix and map at site L",
    choices: &[
        "Only the name and a sentence about it were readable: one stream and a map per site is our reading.",
        "The maps start as the identity, and they alone are decayed.",
    ],
};

fn value_map(config: &ModelConfig, site: u32) -> String {
    format!("{}res_value.weight", site_prefix(config, site))
}

/// Those of `attn_res`, and `<site>res_value.weight` `[d, d]`, the identity, decayed.
#[must_use]
pub fn parameters(config: &ModelConfig) -> Vec<ParamSpec> {
    let d = config.hidden_size;
    let mut specs = query_and_norm(config, 0..config.sublayers() + 1, true);
    specs.extend(
        (0..=config.sublayers()).map(|site| {
            ParamSpec::routing(value_map(config, site), [d, d], Init::Identity).decayed()
        }),
    );
    specs
}

/// State while recording.
#[derive(Debug)]
pub struct SepV {
    config: ModelConfig,
    mix: AttnRes,
}

impl SepV {
    /// A path over `rows` tokens.
    #[must_use]
    pub fn new(tape: &mut Tape, config: &ModelConfig, sublayers_per_block: u32, rows: u32) -> Self {
        Self {
            config: config.clone(),
            mix: AttnRes::new(
                tape,
                config,
                AttnResConfig::blocks(sublayers_per_block),
                rows,
            ),
        }
    }

    fn map(&self, tape: &mut Tape, site: u32, mixed: Tensor) -> Result<Tensor> {
        let map = tape.parameter(&value_map(&self.config, site))?;
        linear(tape, mixed, map)
    }
}

impl ResidualPath for SepV {
    fn expand(&mut self, tape: &mut Tape, e: Tensor) -> Result<()> {
        self.mix.expand(tape, e)
    }

    fn read(&mut self, tape: &mut Tape, site: u32) -> Result<Tensor> {
        let mixed = self.mix.read(tape, site)?;
        self.map(tape, site, mixed)
    }

    fn write(&mut self, tape: &mut Tape, site: u32, y: Tensor) -> Result<()> {
        self.mix.write(tape, site, y)
    }

    fn readout(&mut self, tape: &mut Tape) -> Result<Tensor> {
        let mixed = self.mix.readout(tape)?;
        self.map(tape, self.config.sublayers(), mixed)
    }

    fn routing(&self) -> &[Routing] {
        self.mix.routing()
    }

    fn states(&self) -> &States {
        self.mix.states()
    }
}
