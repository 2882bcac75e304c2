//! How near a mechanism with its initial values is to the standard model with the same weights.
//!
//! Two facts decide most cases. Every sublayer normalises what it reads, so a multiple of the stream reads as the stream, but
//! for the norm's eps. And the outputs of all sublayers, or of all blocks and the unfinished one, sum to the stream: their
//! mean, which zero queries give, is such a multiple.

use braid_engine::models::config::ResidualConfig;
use braid_engine::nn::residual::config::{
    DarRoute, DeltaMode, Granularity, MhcInit, ReadMode, TransparentInit, TransparentWeights,
};

/// The start of a mechanism, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// It is the standard model itself: there is nothing to convert.
    Same,
    /// The standard model's function, to the last bits.
    Exact(&'static str),
    /// The standard model's function but for the eps of its norms, or a bounded disturbance of it.
    Near(&'static str),
    /// Another function: what was learnt is largely lost.
    Jump(&'static str),
}

const SUM: &str = "all sources weigh the same, and their sum is the stream: its multiple differs by the eps of the norms only";
const MEAN_STREAM: &str =
    "the mean of the streams is the standard stream, and differs by the eps of the norms only";

/// How a model with these settings starts.
#[must_use]
pub fn start_of(residual: &ResidualConfig) -> Start {
    match residual {
        ResidualConfig::Standard {} => Start::Same,
        ResidualConfig::AttnRes(options) if options.window > 0 => {
            Start::Jump("sources beyond the window are missing from the sum that is read")
        }
        ResidualConfig::AttnRes(_) | ResidualConfig::SepV { .. } => Start::Near(SUM),
        ResidualConfig::Delta {
            mode, granularity, ..
        } => match (mode, granularity) {
            (DeltaMode::Centered, _) => Start::Exact("every weight is a - 1/n, which is 0"),
            (DeltaMode::Gated, _) => Start::Exact("every gate is 0"),
            (_, Granularity::Sublayer) => Start::Near(
                "a mean of all changes is added to the stream, of which it is a multiple: it differs by the eps of the norms only",
            ),
            (_, Granularity::Block) => Start::Near(
                "a mean of the finished blocks is added to what is read: a bounded disturbance",
            ),
        },
        ResidualConfig::Dar {
            include_partial: false,
            ..
        } => Start::Jump("the unfinished block is missing from the sum that is read"),
        ResidualConfig::Dar {
            route: DarRoute::FixedKv,
            ..
        } => Start::Jump(
            "both streams read the values of one, which holds sublayers in unequal parts",
        ),
        ResidualConfig::Dar { .. } => Start::Near(SUM),
        ResidualConfig::Mhc2Matched {} | ResidualConfig::HyperConnections { .. } => {
            Start::Near(MEAN_STREAM)
        }
        ResidualConfig::Mhc { init, .. } => match init {
            MhcInit::P0 => Start::Near(MEAN_STREAM),
            MhcInit::Megatron | MhcInit::Mindformers => {
                Start::Near("small random gates disturb what the streams are given")
            }
            MhcInit::MhcLite => Start::Near(
                "the streams are given unequal parts whose mean is the standard stream, and read unequally",
            ),
        },
        ResidualConfig::DenseFormer { .. } => {
            Start::Exact("the newest layer weighs 1, all others 0")
        }
        ResidualConfig::Transparent {
            weights: TransparentWeights::Mean,
            ..
        }
        | ResidualConfig::Transparent {
            init: TransparentInit::Uniform,
            ..
        } => {
            Start::Jump("every layer reads the mean of all earlier layers instead of the last one")
        }
        ResidualConfig::Transparent { .. } => {
            Start::Near("the newest layer weighs nearly 1: a bounded disturbance")
        }
        ResidualConfig::Cumulative {
            read: ReadMode::Replace,
        } => Start::Jump(
            "every sublayer reads the mean of all earlier states instead of the last one",
        ),
        ResidualConfig::Cumulative { .. } => {
            Start::Near("the mean of all states is added to the last one: a bounded disturbance")
        }
        // The engine may have mechanisms that this table does not know yet.
        _ => Start::Jump("nothing is known about its start"),
    }
}
