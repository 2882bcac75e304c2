//! How large a mechanism makes a model: what its sites read, and what is kept of a token.

use super::{Granularity, Projection, ResidualConfig};

impl ResidualConfig {
    /// The largest number of sources that any site reads in a model of `layers` layers; 0 for mechanisms without a depth mix.
    /// The constant source of `delta` with `mode = "null"` takes no slot and does not count.
    #[must_use]
    pub fn most_sources(&self, layers: u32) -> u64 {
        let sublayers = 2 * u64::from(layers);
        match *self {
            // The read-out has the most: an unfinished block counts as one more.
            Self::AttnRes(ref options) => u64::from(options.sources(layers.saturating_mul(2))),
            Self::SepV {
                sublayers_per_block,
            } => 1 + sublayers.div_ceil(u64::from(sublayers_per_block.max(1))),
            Self::Delta { .. } => 1 + sublayers.saturating_sub(1) / self.delta_block(),
            Self::Dar {
                layers_per_block, ..
            } => 1 + u64::from(layers.div_ceil(layers_per_block.max(1))),
            Self::DenseFormer { dilation, period } => {
                // The last layer after which an average is taken; there may be none.
                match layers - layers % period.max(1) {
                    0 => 0,
                    last => 1 + u64::from(last / dilation.max(1)),
                }
            }
            Self::Transparent { .. } => 1 + u64::from(layers),
            Self::Cumulative { .. } => sublayers,
            Self::Standard {}
            | Self::Mhc2Matched {}
            | Self::HyperConnections { .. }
            | Self::Mhc { .. } => 0,
        }
    }

    /// The slots of the history of a model of `layers` layers; 0 for mechanisms without one.
    #[must_use]
    pub fn most_slots(&self, layers: u32) -> u64 {
        let layers = u64::from(layers);
        let sublayers = 2 * layers;
        match self {
            // Every running sum of a block has a slot of its own.
            Self::AttnRes(_) | Self::SepV { .. } => 1 + sublayers,
            Self::Delta { .. } => 1 + sublayers / self.delta_block(),
            // Each sublayer writes both streams.
            Self::Dar { .. } | Self::Mhc2Matched {} => 1 + 2 * sublayers,
            Self::DenseFormer { .. } | Self::Transparent { .. } => 1 + layers,
            Self::Cumulative { .. } => sublayers,
            Self::Standard {} | Self::HyperConnections { .. } | Self::Mhc { .. } => 0,
        }
    }

    /// Numbers of one token in the largest tensor that the mechanism adds to a model of `layers` layers of this width; at
    /// least the width.
    #[must_use]
    pub fn widest(&self, layers: u32, width: u32) -> u64 {
        let width = u64::from(width);
        let history = self.most_slots(layers) * width;
        let streams = |n: u32| u64::from(n) * width.max(u64::from(n) + 2);
        let widest = match *self {
            // Each part of the channels has two scores a source.
            Self::AttnRes(ref options) => {
                history.max(2 * u64::from(options.depth_heads) * self.most_sources(layers))
            }
            Self::HyperConnections { streams: n, .. } => streams(n),
            Self::Mhc {
                streams: n,
                projection: Projection::Sinkhorn,
                sinkhorn_iters,
                ..
            } => {
                // The backward pass keeps the sums of columns and rows of every iteration.
                streams(n).max(2 * u64::from(sinkhorn_iters) * u64::from(n))
            }
            Self::Mhc { streams: n, .. } => streams(n),
            _ => history,
        };
        widest.max(width)
    }

    /// Sublayers of what is one source of `delta`; 1 for the other kinds.
    fn delta_block(&self) -> u64 {
        match *self {
            Self::Delta {
                granularity: Granularity::Block,
                sublayers_per_block,
                ..
            } => u64::from(sublayers_per_block.max(1)),
            _ => 1,
        }
    }

    /// The end of a sentence that begins with "lower model.layers": what else makes fewer sources.
    pub(super) fn fewer_sources(&self) -> &'static str {
        match self {
            Self::AttnRes(_) => " or raise residual.sublayers_per_block, or set residual.window",
            Self::SepV { .. }
            | Self::Delta {
                granularity: Granularity::Block,
                ..
            } => " or raise residual.sublayers_per_block",
            Self::Delta { .. } => {
                " or set residual.granularity = \"block\" and residual.sublayers_per_block"
            }
            Self::Dar { .. } => " or raise residual.layers_per_block",
            Self::DenseFormer { .. } => " or raise residual.dilation",
            _ => "",
        }
    }
}
