//! Sizes of models that are measured.

use crate::models::config::{FeedForwardConfig, ModelConfig, ResidualConfig};
use crate::nn::Batch;

/// A size of a model and of its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// What to call it.
    pub name: &'static str,
    /// Width of the stream.
    pub width: u32,
    /// Layers.
    pub layers: u32,
    /// Heads, of queries as of keys.
    pub heads: u32,
    /// Tokens of a sequence.
    pub context: u32,
    /// Sequences of a batch.
    pub sequences: u32,
    /// Tokens in the vocabulary.
    pub vocab: u32,
}

/// The sizes that have a name.
pub const SIZES: [Size; 3] = [
    Size {
        name: "small",
        width: 128,
        layers: 4,
        heads: 4,
        context: 64,
        sequences: 12,
        vocab: 65,
    },
    Size {
        name: "medium",
        width: 256,
        layers: 6,
        heads: 8,
        context: 128,
        sequences: 8,
        vocab: 65,
    },
    Size {
        name: "large",
        width: 256,
        layers: 8,
        heads: 8,
        context: 256,
        sequences: 8,
        vocab: 65,
    },
];

impl Size {
    /// The batch.
    #[must_use]
    pub fn batch(&self) -> Batch {
        Batch {
            sequences: self.sequences,
            context: self.context,
        }
    }

    /// The model with a residual mechanism. The hidden width of the feed-forward sublayers is 8/3 of the width, in whole
    /// multiples of 64.
    #[must_use]
    pub fn model(&self, residual: ResidualConfig) -> ModelConfig {
        ModelConfig {
            model_type: "braid".into(),
            vocab_size: self.vocab,
            hidden_size: self.width,
            intermediate_size: (self.width * 8 / 3).next_multiple_of(64),
            num_hidden_layers: self.layers,
            num_attention_heads: self.heads,
            num_key_value_heads: self.heads,
            head_dim: self.width / self.heads,
            rms_norm_eps: 1e-6,
            rope_theta: 10_000.0,
            tie_word_embeddings: true,
            qk_norm: true,
            initializer_range: 0.02,
            residual,
            feed_forward: FeedForwardConfig::Swiglu {},
        }
    }
}
