//! Residual mechanisms: how sublayers read from, and write to, what earlier sublayers computed.
//!
//! Each mechanism is one file with its equations, its parameters and its [`ResidualPath`]. This file is the only place
//! that knows them all.

pub mod about;
pub mod attn_res;
pub mod config;
pub mod cumulative;
pub mod dar;
pub mod delta;
pub mod dense_former;
mod dual;
pub mod hyper_connections;
pub mod mhc;
pub mod mhc2_matched;
pub mod path;
pub mod sep_v;
pub mod standard;
pub mod states;
mod streams;
pub mod transparent;
mod whole_layers;

pub use about::About;
pub use config::{
    AttnResConfig, DarRoute, DeltaMode, DepthWeights, Evaluation, Gates, Granularity, MhcInit,
    Projection, ReadMode, ResidualConfig, TransparentInit, TransparentWeights,
};
pub use path::{Gate, ResidualPath, Routing, Weighting, site_prefix};
pub use states::{Boundary, State, States};

use crate::error::Result;
use crate::models::config::ModelConfig;
use crate::params::ParamSpec;
use crate::tape::Tape;

impl ResidualConfig {
    /// What to know about the mechanism.
    #[must_use]
    pub fn about(&self) -> About {
        match self {
            Self::Standard {} => standard::ABOUT,
            Self::AttnRes { .. } => attn_res::ABOUT,
            Self::Delta { .. } => delta::ABOUT,
            Self::Dar { .. } => dar::ABOUT,
            Self::Mhc2Matched {} => mhc2_matched::ABOUT,
            Self::HyperConnections { .. } => hyper_connections::ABOUT,
            Self::Mhc { .. } => mhc::ABOUT,
            Self::SepV { .. } => sep_v::ABOUT,
            Self::Cumulative { .. } => cumulative::ABOUT,
            Self::DenseFormer { .. } => dense_former::ABOUT,
            Self::Transparent { .. } => transparent::ABOUT,
        }
    }

    /// The parameters that the mechanism adds to a model.
    #[must_use]
    pub fn parameters(&self, model: &ModelConfig) -> Vec<ParamSpec> {
        match *self {
            Self::Standard {} => Vec::new(),
            Self::AttnRes(options) => attn_res::parameters(model, &options),
            Self::Delta { mode, .. } => delta::parameters(model, mode),
            Self::Dar { gates, .. } => dar::parameters(model, gates),
            Self::Mhc2Matched {} => mhc2_matched::parameters(model),
            Self::HyperConnections { streams, dynamic } => {
                hyper_connections::parameters(model, streams, dynamic)
            }
            Self::Mhc { streams, init, .. } => mhc::parameters(model, streams, init),
            Self::SepV { .. } => sep_v::parameters(model),
            Self::Cumulative { .. } => cumulative::parameters(model),
            Self::DenseFormer { dilation, period } => {
                dense_former::parameters(model, dilation, period)
            }
            Self::Transparent { init, weights } => transparent::parameters(model, init, weights),
        }
    }

    /// The mechanism, ready to record a model over `rows` tokens.
    ///
    /// # Errors
    /// If it does not fit the tape.
    pub fn path(
        &self,
        tape: &mut Tape,
        model: &ModelConfig,
        rows: u32,
    ) -> Result<Box<dyn ResidualPath>> {
        Ok(match *self {
            Self::Standard {} => Box::new(standard::Standard::new(model.sublayers())),
            Self::AttnRes(options) => Box::new(attn_res::AttnRes::new(tape, model, options, rows)),
            Self::Delta {
                granularity,
                sublayers_per_block,
                mode,
                null_logit,
            } => {
                let block = if granularity == Granularity::Sublayer {
                    1
                } else {
                    sublayers_per_block
                };
                Box::new(delta::Delta::new(
                    tape, model, block, mode, null_logit, rows,
                ))
            }
            Self::Dar {
                layers_per_block,
                route,
                gates,
                include_partial,
            } => Box::new(dar::Dar::new(
                tape,
                model,
                layers_per_block,
                route,
                gates,
                include_partial,
                rows,
            )),
            Self::Mhc2Matched {} => Box::new(mhc2_matched::Mhc2Matched::new(tape, model, rows)),
            Self::HyperConnections { streams, dynamic } => Box::new(
                hyper_connections::HyperConnections::new(model, streams, dynamic, rows),
            ),
            Self::Mhc {
                streams,
                projection,
                sinkhorn_iters,
                ..
            } => Box::new(mhc::Mhc::new(
                model,
                streams,
                projection,
                sinkhorn_iters,
                rows,
            )),
            Self::SepV {
                sublayers_per_block,
            } => Box::new(sep_v::SepV::new(tape, model, sublayers_per_block, rows)),
            Self::Cumulative { read } => {
                Box::new(cumulative::Cumulative::new(tape, model, read, rows))
            }
            Self::DenseFormer { dilation, period } => Box::new(dense_former::DenseFormer::new(
                tape, model, dilation, period, rows,
            )),
            Self::Transparent { weights, .. } => {
                Box::new(transparent::Transparent::new(tape, model, weights, rows))
            }
        })
    }
}
