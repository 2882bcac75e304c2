//! The `residual` object of `config.json` and the `[residual]` table of a run's TOML: same keys, same values.
//!
//! Table 2.1 of the checkpoint format. Every key but `kind` has a default; unknown keys are refused.

use serde::{Deserialize, Serialize};

pub use self::attn_res::{AttnResConfig, DepthWeights, Evaluation};
use crate::error::{Error, Result};
use crate::ops::depth_attention::MAX_SOURCES;

mod attn_res;
mod size;

/// Which residual mechanism a model has, and how it is set.
///
/// Every mechanism of the format can be written down here, whether or not this version can run it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ResidualConfig {
    /// `h <- h + F(h)` (section 4.1).
    Standard {},
    /// Attention residuals: a depth mix over all earlier outputs replaces the stream (4.2).
    AttnRes(AttnResConfig),
    /// Attention residuals with a value map per site (4.2).
    SepV {
        /// Sublayers in a block; 1 is the full form.
        #[serde(default = "one")]
        sublayers_per_block: u32,
    },
    /// An ordinary stream, plus a depth mix over what each sublayer or block added (4.3).
    Delta {
        /// What one source is.
        #[serde(default)]
        granularity: Granularity,
        /// Sublayers in a block; read only with `granularity = "block"`.
        #[serde(default = "one")]
        sublayers_per_block: u32,
        /// How the mix is weighted.
        #[serde(default)]
        mode: DeltaMode,
        /// Logit of the null source; read only with `mode = "null"`.
        #[serde(default)]
        null_logit: f64,
    },
    /// Dual-stream attention residuals (4.5).
    Dar {
        /// Layers in a block.
        #[serde(default = "one")]
        layers_per_block: u32,
        /// Which stream keys and values come from.
        #[serde(default)]
        route: DarRoute,
        /// Whether the gates depend on the token.
        #[serde(default)]
        gates: Gates,
        /// Whether the current block's partial sum is a source.
        #[serde(default = "yes")]
        include_partial: bool,
    },
    /// Two streams with DAR's gates and no history: the control arm of `dar` (4.6).
    Mhc2Matched {},
    /// Hyper-connections (4.7).
    HyperConnections {
        /// Number of streams.
        #[serde(default = "two")]
        streams: u32,
        /// Whether read, mix and write weights depend on the token.
        #[serde(default = "yes")]
        dynamic: bool,
    },
    /// Manifold-constrained hyper-connections (4.8).
    Mhc {
        /// Number of streams.
        #[serde(default = "two")]
        streams: u32,
        /// How the mixing matrix is made doubly stochastic.
        #[serde(default)]
        projection: Projection,
        /// Iterations of `projection = "sinkhorn"`.
        #[serde(default = "twenty")]
        sinkhorn_iters: u32,
        /// Initial values: whose they are. Not a key of the format, whose default they extend.
        #[serde(default)]
        init: MhcInit,
    },
    /// Depth-weighted averages of layer outputs (4.9).
    DenseFormer {
        /// Every how manieth earlier layer is read.
        #[serde(default = "one")]
        dilation: u32,
        /// After every how manieth layer an average is taken.
        #[serde(default = "one")]
        period: u32,
    },
    /// Learned softmax weights over layer outputs, the same for all tokens (4.10).
    Transparent {
        /// Initial logits.
        #[serde(default)]
        init: TransparentInit,
        /// Whether there are logits at all. Not a key of the format, whose default they extend.
        #[serde(default)]
        weights: TransparentWeights,
    },
    /// Depth mix over running states: control arm (4.4).
    Cumulative {
        /// Whether the mix replaces or joins the state.
        #[serde(default)]
        read: ReadMode,
    },
}

/// What one source of `delta` is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Granularity {
    /// The output of one sublayer.
    #[default]
    Sublayer,
    /// What a block of sublayers added to the stream.
    Block,
}

/// How `delta` weighs its sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeltaMode {
    /// `a_i`.
    #[default]
    Plain,
    /// `a_i - 1/n`.
    Centered,
    /// Softmax over the sources and one constant source of value 0.
    Null,
    /// `eta a_i` with a learned `eta` per site.
    Gated,
}

/// Where the keys and values of a DAR stream come from: columns `K(0), K(1)` and `V(0), V(1)` of the format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DarRoute {
    /// Keys from the other stream, values from the own one.
    #[default]
    Dar,
    /// Keys and values from the own stream.
    SelfKv,
    /// Keys from the own stream, values from the other one.
    CrossV,
    /// Keys from stream 0, values from stream 1.
    FixedKv,
}

impl DarRoute {
    /// Stream that gives the keys of stream `stream` (0 or 1).
    #[must_use]
    pub fn key_stream(self, stream: usize) -> usize {
        match self {
            Self::Dar => 1 - stream,
            Self::SelfKv | Self::CrossV => stream,
            Self::FixedKv => 0,
        }
    }

    /// Stream that gives the values of stream `stream` (0 or 1).
    #[must_use]
    pub fn value_stream(self, stream: usize) -> usize {
        match self {
            Self::Dar | Self::SelfKv => stream,
            Self::CrossV => 1 - stream,
            Self::FixedKv => 1,
        }
    }
}

/// Whether gates depend on the token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gates {
    /// Bias and a product with the normalised stream.
    #[default]
    Dynamic,
    /// Bias only.
    Static,
}

/// How `mhc` makes its mixing matrix doubly stochastic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Projection {
    /// Alternating division of columns and rows by their sums.
    #[default]
    Sinkhorn,
    /// Closed form for two streams.
    Exact2,
}

/// Initial values of `mhc`: the paper states only the gate scales. `nn::residual::mhc` has the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MhcInit {
    /// Those of the checkpoint format: the standard model, with streams that will part.
    #[default]
    P0,
    /// Those of Megatron-core.
    Megatron,
    /// Those of MindFormers.
    Mindformers,
    /// Those of the repository mhc-lite.
    MhcLite,
}

/// Initial logits of `transparent`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransparentInit {
    /// All 0.
    #[default]
    Uniform,
    /// The newest layer dominates.
    Recent,
}

/// Where the weights of `transparent` come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransparentWeights {
    /// The softmax of learned logits.
    #[default]
    Learned,
    /// All the same, always: a mean without parameters, for comparison. `init` is then not read.
    Mean,
}

/// What `cumulative` does with its mix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadMode {
    /// The sublayer reads the mix.
    #[default]
    Replace,
    /// The sublayer reads the state plus the mix.
    Add,
}

fn one() -> u32 {
    1
}
fn two() -> u32 {
    2
}
fn twenty() -> u32 {
    20
}
fn yes() -> bool {
    true
}

impl Default for ResidualConfig {
    /// `standard`, as a `config.json` without the object means.
    fn default() -> Self {
        Self::Standard {}
    }
}

impl ResidualConfig {
    /// All values of `kind`.
    pub const KINDS: [&str; 11] = [
        "standard",
        "attn_res",
        "sep_v",
        "delta",
        "dar",
        "mhc2_matched",
        "hyper_connections",
        "mhc",
        "dense_former",
        "transparent",
        "cumulative",
    ];

    /// The mechanism with all other keys at their defaults; `None` for an unknown kind.
    #[must_use]
    pub fn of_kind(kind: &str) -> Option<Self> {
        serde_json::from_value(serde_json::json!({ "kind": kind })).ok()
    }

    /// The value of `kind`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Standard {} => "standard",
            Self::AttnRes(_) => "attn_res",
            Self::SepV { .. } => "sep_v",
            Self::Delta { .. } => "delta",
            Self::Dar { .. } => "dar",
            Self::Mhc2Matched {} => "mhc2_matched",
            Self::HyperConnections { .. } => "hyper_connections",
            Self::Mhc { .. } => "mhc",
            Self::DenseFormer { .. } => "dense_former",
            Self::Transparent { .. } => "transparent",
            Self::Cumulative { .. } => "cumulative",
        }
    }

    /// Refuse values that cannot work in a model of `layers` layers and this width.
    ///
    /// # Errors
    /// Names the field as a run's TOML writes it, and its range.
    pub fn validate(&self, layers: u32, width: u32) -> Result<()> {
        let at_least_one = |key: &str, value: u32| {
            if value == 0 {
                Err(Error::config(
                    format!("residual.{key}"),
                    "is 0; it must be 1 or more",
                ))
            } else {
                Ok(())
            }
        };
        match *self {
            Self::AttnRes(options) => {
                at_least_one("sublayers_per_block", options.sublayers_per_block)?;
                options.validate(width)?;
            }
            Self::SepV {
                sublayers_per_block,
            } => at_least_one("sublayers_per_block", sublayers_per_block)?,
            Self::Delta {
                sublayers_per_block,
                null_logit,
                ..
            } => {
                at_least_one("sublayers_per_block", sublayers_per_block)?;
                // Beyond this, one weight is 1 and the others are 0 in 32-bit floats.
                if !(-80.0..=80.0).contains(&null_logit) {
                    return Err(Error::config(
                        "residual.null_logit",
                        format!("is {null_logit}; it must be between -80 and 80"),
                    ));
                }
            }
            Self::Dar {
                layers_per_block, ..
            } => at_least_one("layers_per_block", layers_per_block)?,
            Self::HyperConnections { streams, .. } => check_streams(streams)?,
            Self::Mhc {
                streams,
                projection,
                sinkhorn_iters,
                ..
            } => {
                check_streams(streams)?;
                if projection == Projection::Exact2 && streams != 2 {
                    return Err(Error::config(
                        "residual.streams",
                        format!("is {streams}; `projection = \"exact2\"` needs 2"),
                    ));
                }
                if !(1..=100).contains(&sinkhorn_iters) {
                    return Err(Error::config(
                        "residual.sinkhorn_iters",
                        format!("is {sinkhorn_iters}; it must be between 1 and 100"),
                    ));
                }
            }
            Self::DenseFormer { dilation, period } => {
                at_least_one("dilation", dilation)?;
                at_least_one("period", period)?;
            }
            Self::Standard {}
            | Self::Mhc2Matched {}
            | Self::Transparent { .. }
            | Self::Cumulative { .. } => {}
        }
        let sources = self.most_sources(layers);
        if sources > MAX_SOURCES as u64 {
            let advice = self.fewer_sources();
            return Err(Error::config(
                "model.layers",
                format!(
                    "is {layers}: a site of `residual.kind = \"{}\"` would read {sources} sources, at most {MAX_SOURCES} \
                     are possible; lower model.layers{advice}",
                    self.kind()
                ),
            ));
        }
        Ok(())
    }
}

fn check_streams(streams: u32) -> Result<()> {
    if (1..=8).contains(&streams) {
        Ok(())
    } else {
        Err(Error::config(
            "residual.streams",
            format!("is {streams}; it must be between 1 and 8"),
        ))
    }
}
