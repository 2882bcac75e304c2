//! `config.json`: everything about a model that its weights do not say (section 2 of the checkpoint format).

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
pub use crate::nn::feed_forward::{ExpertCompute, ExpertGate, FeedForwardConfig, MoeConfig};
pub use crate::nn::residual::config::ResidualConfig;

/// Shape and mechanism of a model. Field names are the keys of `config.json`; what is missing there gets its default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelConfig {
    /// Always `braid`.
    #[serde(default = "model_type")]
    pub model_type: String,
    /// Number of tokens, `V`.
    pub vocab_size: u32,
    /// Width of the stream, `d`.
    pub hidden_size: u32,
    /// Hidden width of the SwiGLU.
    pub intermediate_size: u32,
    /// Number of layers, `N`; a layer is attention and feed-forward.
    pub num_hidden_layers: u32,
    /// Query heads.
    pub num_attention_heads: u32,
    /// Key and value heads; query head `h` reads `h / (heads / kv_heads)`.
    pub num_key_value_heads: u32,
    /// Channels of a head, even.
    pub head_dim: u32,
    /// The eps of every root-mean-square norm, depth keys and gate features included.
    #[serde(default = "rms_norm_eps")]
    pub rms_norm_eps: f64,
    /// Base of the rotary embedding.
    #[serde(default = "rope_theta")]
    pub rope_theta: f64,
    /// Whether the output matrix is the embedding.
    #[serde(default = "yes")]
    pub tie_word_embeddings: bool,
    /// Whether queries and keys are normalised per head.
    #[serde(default = "yes")]
    pub qk_norm: bool,
    /// Standard deviation of random initial values.
    #[serde(default = "initializer_range")]
    pub initializer_range: f64,
    /// The residual mechanism.
    #[serde(default)]
    pub residual: ResidualConfig,
    /// The feed-forward sublayers.
    #[serde(default)]
    pub feed_forward: FeedForwardConfig,
}

fn model_type() -> String {
    "braid".into()
}
fn rms_norm_eps() -> f64 {
    1e-6
}
fn rope_theta() -> f64 {
    10_000.0
}
fn initializer_range() -> f64 {
    0.02
}
fn yes() -> bool {
    true
}

impl ModelConfig {
    /// Read a `config.json`.
    ///
    /// # Errors
    /// If the text is not JSON, lacks a required key, has an unknown key in `residual` or `feed_forward`, or a value is
    /// impossible.
    pub fn from_json(text: &str) -> Result<Self> {
        let config: Self = serde_json::from_str(text)
            .map_err(|error| Error::File(format!("config.json cannot be used: {error}")))?;
        if config.model_type != "braid" {
            return Err(Error::File(format!(
                "config.json says model_type `{}`; only `braid` is known",
                config.model_type
            )));
        }
        config.validate()?;
        Ok(config)
    }

    /// The text of a `config.json`, all keys written out.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self)
            .expect("a struct of numbers, strings and such structs is JSON");
        text.push('\n');
        text
    }

    /// Number of sublayers, `L = 2 N`. Site `L` is the read-out.
    #[must_use]
    pub fn sublayers(&self) -> u32 {
        2 * self.num_hidden_layers
    }

    /// Width of all queries together.
    #[must_use]
    pub fn query_width(&self) -> u32 {
        self.num_attention_heads * self.head_dim
    }

    /// Width of all keys together, also of all values.
    #[must_use]
    pub fn key_width(&self) -> u32 {
        self.num_key_value_heads * self.head_dim
    }

    /// The mixture of experts, if the feed-forward sublayers are one.
    #[must_use]
    pub fn experts(&self) -> Option<&MoeConfig> {
        match &self.feed_forward {
            FeedForwardConfig::Moe(moe) => Some(moe),
            FeedForwardConfig::Swiglu {} => None,
        }
    }

    /// Refuse impossible values.
    ///
    /// # Errors
    /// Names the field as a run's TOML writes it (`model.heads`), what it is and what it may be.
    pub fn validate(&self) -> Result<()> {
        let within = |field: &str, value: u32, low: u32, high: u32| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(Error::config(
                    field,
                    format!("is {value}; it must be between {low} and {high}"),
                ))
            }
        };
        within("model.layers", self.num_hidden_layers, 1, 256)?;
        within("model.width", self.hidden_size, 1, 16_384)?;
        within("model.heads", self.num_attention_heads, 1, 256)?;
        within(
            "model.kv_heads",
            self.num_key_value_heads,
            1,
            self.num_attention_heads,
        )?;
        if !self
            .num_attention_heads
            .is_multiple_of(self.num_key_value_heads)
        {
            return Err(Error::config(
                "model.kv_heads",
                format!(
                    "is {}; it must divide model.heads, {}",
                    self.num_key_value_heads, self.num_attention_heads
                ),
            ));
        }
        within("model.head_dim", self.head_dim, 2, 128)?;
        if !self.head_dim.is_multiple_of(2) {
            return Err(Error::config(
                "model.head_dim",
                format!(
                    "is {}; it must be even, the rotary embedding turns pairs of channels",
                    self.head_dim
                ),
            ));
        }
        within("model.ffn", self.intermediate_size, 1, 65_536)?;
        if self.vocab_size == 0 || self.vocab_size > 1 << 20 {
            return Err(Error::config(
                "vocab_size",
                format!(
                    "is {}; it must be between 1 and {}",
                    self.vocab_size,
                    1 << 20
                ),
            ));
        }
        for (field, value, low, high) in [
            ("model.eps", self.rms_norm_eps, 1e-12, 1.0),
            ("model.rope_theta", self.rope_theta, 1.0, 1e9),
        ] {
            // Written so that NaN is refused as well.
            if !(low..=high).contains(&value) {
                return Err(Error::config(
                    field,
                    format!("is {value}; it must be between {low:e} and {high:e}"),
                ));
            }
        }
        if !(0.0..=10.0).contains(&self.initializer_range) {
            return Err(Error::config(
                "model.init_std",
                format!("is {}; it must be between 0 and 10", self.initializer_range),
            ));
        }
        self.residual
            .validate(self.num_hidden_layers, self.hidden_size)?;
        self.feed_forward.validate()
    }
}
