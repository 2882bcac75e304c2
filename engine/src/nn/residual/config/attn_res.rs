//! Settings of `attn_res`: the block size, and the ablations of its paper. Only the block size is a key of the checkpoint
//! format; the others and their parameters are in `docs/residual-options.md`.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// How attention residuals weigh their sources, and how they are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AttnResConfig {
    /// Sublayers in a block; 1 is the full form.
    pub sublayers_per_block: u32,
    /// What the weights are made of.
    pub weights: DepthWeights,
    /// Whether keys are normalised.
    pub key_norm: bool,
    /// Parts of the channels with weights of their own; divides the width.
    pub depth_heads: u32,
    /// How many of the newest sources are read, besides the embedding; 0 is all.
    pub window: u32,
    /// In how many steps a softmax is computed.
    pub evaluation: Evaluation,
}

/// What the depth weights of `attn_res` are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DepthWeights {
    /// Softmax of the products of query and keys.
    #[default]
    Softmax,
    /// Sigmoid of each product, not divided by their sum.
    Sigmoid,
    /// Softmax of learned numbers: no query, no keys, the same for all tokens.
    Static,
}

/// How the softmax of `attn_res` is computed. The result is the same up to rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evaluation {
    /// At each site, over all its sources.
    #[default]
    Single,
    /// At the start of a block for all its sites, over the finished blocks; the partial sum joins at its site.
    TwoPhase,
}

impl Default for AttnResConfig {
    fn default() -> Self {
        Self {
            sublayers_per_block: 1,
            weights: DepthWeights::Softmax,
            key_norm: true,
            depth_heads: 1,
            window: 0,
            evaluation: Evaluation::Single,
        }
    }
}

impl AttnResConfig {
    /// Blocks of this many sublayers, nothing else changed.
    #[must_use]
    pub fn blocks(sublayers_per_block: u32) -> Self {
        Self {
            sublayers_per_block,
            ..Self::default()
        }
    }

    /// How many sources site `site` reads: the embedding, the finished blocks, and a partial sum; at most `window + 1`.
    #[must_use]
    pub fn sources(&self, site: u32) -> u32 {
        let block = self.sublayers_per_block.max(1);
        let all = 1 + site.div_ceil(block);
        match self.window {
            0 => all,
            window => all.min(window.saturating_add(1)),
        }
    }

    /// Refuse what cannot work in a model of this width, and what does not go together.
    pub(super) fn validate(&self, width: u32) -> Result<()> {
        if self.depth_heads == 0 || !width.is_multiple_of(self.depth_heads) {
            return Err(Error::config(
                "residual.depth_heads",
                format!(
                    "is {}; it must divide model.width, {width}",
                    self.depth_heads
                ),
            ));
        }
        let changed = [
            (!self.key_norm, "residual.key_norm = false"),
            (self.depth_heads != 1, "residual.depth_heads"),
            (self.window != 0, "residual.window"),
            (
                self.weights != DepthWeights::Softmax,
                "residual.weights other than \"softmax\"",
            ),
        ];
        let first = |among: &[(bool, &'static str)]| {
            let found = among.iter().find(|(changed, _)| *changed);
            found.map(|(_, what)| *what)
        };
        if self.weights == DepthWeights::Static
            && let Some(what) = first(&changed[..2])
        {
            let message =
                format!("is \"static\", which has no keys: {what} would do nothing; remove it");
            return Err(Error::config("residual.weights", message));
        }
        if self.evaluation == Evaluation::TwoPhase
            && let Some(what) = first(&changed)
        {
            let message = format!(
                "is \"two_phase\", which continues one plain softmax over all sources: it does not go together with \
                     {what}; use \"single\""
            );
            return Err(Error::config("residual.evaluation", message));
        }
        Ok(())
    }
}
