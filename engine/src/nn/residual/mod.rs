//! Residual mechanisms: how sublayers read from, and write to, what earlier sublayers computed.
//!
//! Each mechanism is one file with its equations, its parameters and its [`ResidualPath`]. This file is the only place
//! that knows them all.

pub mod about;
pub mod attn_res;
pub mod config;
pub mod dar;
pub mod delta;
mod dual;
pub mod hyper_connections;
pub mod mhc;
pub mod mhc2_matched;
pub mod path;
pub mod standard;
mod streams;

pub use about::About;
pub use config::{
    DarRoute, DeltaMode, Gates, Granularity, MhcInit, Projection, ReadMode, ResidualConfig,
    TransparentInit,
};
pub use path::{Gate, ResidualPath, Routing, site_prefix};

use crate::error::{Error, Result};
use crate::models::config::ModelConfig;
use crate::params::ParamSpec;
use crate::tape::Tape;

fn not_yet(kind: &str) -> Error {
    let known = "standard, attn_res, delta, dar, mhc2_matched, hyper_connections, mhc";
    Error::config(
        "residual.kind",
        format!("\"{kind}\" is not implemented in this version; use one of {known}"),
    )
}

impl ResidualConfig {
    /// The parameters that the mechanism adds to a model.
    ///
    /// # Errors
    /// If the mechanism is not implemented.
    pub fn parameters(&self, model: &ModelConfig) -> Result<Vec<ParamSpec>> {
        Ok(match *self {
            Self::Standard {} => Vec::new(),
            Self::AttnRes { .. } => attn_res::parameters(model),
            Self::Delta { mode, .. } => delta::parameters(model, mode),
            Self::Dar { gates, .. } => dar::parameters(model, gates),
            Self::Mhc2Matched {} => mhc2_matched::parameters(model),
            Self::HyperConnections { streams, dynamic } => {
                hyper_connections::parameters(model, streams, dynamic)
            }
            Self::Mhc { streams, init, .. } => mhc::parameters(model, streams, init),
            _ => return Err(not_yet(self.kind())),
        })
    }

    /// The mechanism, ready to record a model over `rows` tokens.
    ///
    /// # Errors
    /// If the mechanism is not implemented.
    pub fn path(
        &self,
        tape: &mut Tape,
        model: &ModelConfig,
        rows: u32,
    ) -> Result<Box<dyn ResidualPath>> {
        Ok(match *self {
            Self::Standard {} => Box::new(standard::Standard::default()),
            Self::AttnRes {
                sublayers_per_block,
            } => Box::new(attn_res::AttnRes::new(
                tape,
                model,
                sublayers_per_block,
                rows,
            )),
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
            _ => return Err(not_yet(self.kind())),
        })
    }
}
