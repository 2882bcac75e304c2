//! Routing at one moment of a training.

use serde::{Deserialize, Serialize};

use super::not_finite;

/// What kind of sublayer a site is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SiteKind {
    /// Attention.
    Attn,
    /// Feed-forward.
    Mlp,
    /// The read-out before the final norm.
    Readout,
}

impl SiteKind {
    /// What site `site` is in a model of `sublayers` sublayers.
    #[must_use]
    pub fn of(site: u32, sublayers: u32) -> Self {
        match (site == sublayers, site.is_multiple_of(2)) {
            (true, _) => Self::Readout,
            (false, true) => Self::Attn,
            (false, false) => Self::Mlp,
        }
    }
}

/// What one stream of a site reads; means over tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// `embed`, `block 1`, .., `partial`
    pub sources: Vec<String>,
    /// Mean weight of each source.
    #[serde(deserialize_with = "not_finite::list")]
    pub weight: Vec<f64>,
    /// Mean over tokens of the largest weight; `None` where weights do not sum to one.
    #[serde(default)]
    pub max: Option<f64>,
    /// Mean entropy in nats; `None` where weights do not sum to one.
    #[serde(default)]
    pub entropy: Option<f64>,
    /// `1 / n`; `None` where weights do not sum to one.
    #[serde(default)]
    pub floor: Option<f64>,
}

/// A site: its streams and gates, as in the `routing` record. What a mechanism does not have is absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// Number, `L` for the read-out.
    pub site: u32,
    /// What it is.
    pub kind: SiteKind,
    /// One entry a stream.
    #[serde(default)]
    pub streams: Vec<Stream>,
    /// Read gates of the two streams (DAR, mHC-2 matched).
    #[serde(default, deserialize_with = "not_finite::some_list")]
    pub alpha: Option<Vec<f64>>,
    /// Share of a stream's own partial sum (DAR, mHC-2 matched).
    #[serde(default)]
    pub rho: Option<f64>,
    /// Write gates (DAR, mHC-2 matched).
    #[serde(default, deserialize_with = "not_finite::some_list")]
    pub beta: Option<Vec<f64>>,
    /// Read weights of the streams (hyper-connections, mHC).
    #[serde(default, deserialize_with = "not_finite::some_list")]
    pub read: Option<Vec<f64>>,
    /// Write weights of the streams (hyper-connections, mHC).
    #[serde(default, deserialize_with = "not_finite::some_list")]
    pub write: Option<Vec<f64>>,
    /// Mixing matrix (hyper-connections: from row to column; mHC: row is the new stream).
    #[serde(default, deserialize_with = "not_finite::some_table")]
    pub mix: Option<Vec<Vec<f64>>>,
}

/// Sizes at one site.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Depth {
    /// The site.
    pub site: u32,
    /// Of what the sublayer reads, before its norm: root mean square over tokens and channels.
    #[serde(deserialize_with = "not_finite::number")]
    pub input: f64,
    /// Of what it gives, likewise; 0 at the read-out.
    #[serde(deserialize_with = "not_finite::number")]
    pub output: f64,
    /// Norm of the last update's gradient, before clipping, with respect to the sublayer's own parameters. `None` before the
    /// first update, and where it is not finite.
    #[serde(default)]
    pub gradient: Option<f64>,
}

/// Coefficients of every earlier output in what each site reads: the mechanism written as one dense matrix.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Unfolded {
    /// Row `k`: site `k`; column 0: the embedding, column `s + 1`: output of sublayer `s`. Row `k` has `k + 1` columns.
    #[serde(deserialize_with = "not_finite::table")]
    pub rows: Vec<Vec<f64>>,
}

/// Routing at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// Updates done.
    pub step: u64,
    /// Tokens that the means are over.
    pub tokens: u64,
    /// All sites that have something to show.
    pub sites: Vec<Site>,
    /// Norms per depth; empty if they were not taken.
    pub depth: Vec<Depth>,
    /// The unfolded matrix; `None` if it was not taken.
    pub unfolded: Option<Unfolded>,
}
