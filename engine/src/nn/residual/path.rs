//! The interface between a model and its residual mechanism.

use serde::Serialize;

use super::states::States;
use crate::error::Result;
use crate::models::config::ModelConfig;
use crate::tape::{Tape, Tensor};

/// What carries information from sublayer to sublayer. The model calls it and never learns which mechanism it runs:
///
/// ```text
/// expand(e);  for every site s:  x = read(s);  y = F_s(x);  write(s, y);   then  out = readout()
/// ```
///
/// Sites are numbered `0..L`: even ones are attention, odd ones feed-forward sublayers, site `L` is the read-out.
pub trait ResidualPath {
    /// Take the token embedding `e` `[rows, d]`.
    ///
    /// # Errors
    /// If a kernel call is malformed or a parameter is missing, here and below.
    fn expand(&mut self, tape: &mut Tape, e: Tensor) -> Result<()>;

    /// What sublayer `site` gets to see, `[rows, d]`, before its own norm.
    ///
    /// # Errors
    /// As [`ResidualPath::expand`].
    fn read(&mut self, tape: &mut Tape, site: u32) -> Result<Tensor>;

    /// Take the output `y` `[rows, d]` of sublayer `site`.
    ///
    /// # Errors
    /// As [`ResidualPath::expand`].
    fn write(&mut self, tape: &mut Tape, site: u32, y: Tensor) -> Result<()>;

    /// What the final norm gets to see, `[rows, d]`.
    ///
    /// # Errors
    /// As [`ResidualPath::expand`].
    fn readout(&mut self, tape: &mut Tape) -> Result<Tensor>;

    /// The depth weights that this path has published, in the order of recording. Empty for mechanisms without any.
    fn routing(&self) -> &[Routing] {
        &[]
    }

    /// The gate values that this path has published, in the order of recording.
    fn gates(&self) -> &[Gate] {
        &[]
    }

    /// The states that this path has published on an analysing tape.
    fn states(&self) -> &States;
}

/// What published depth weights are: which numbers about them mean something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weighting {
    /// At least 0, and they sum to one.
    #[default]
    Softmax,
    /// Each between 0 and 1, of any sum.
    Sigmoid,
    /// Any numbers, negative ones too.
    Signed,
}

/// Published depth weights: tensor `routing.<site>.<stream>` of a watching tape, `[rows, sources]`, or `[sources]` if they
/// are shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routing {
    /// Which sublayer reads; `L` is the read-out.
    pub site: u32,
    /// Which stream, 0 for mechanisms with one.
    pub stream: u32,
    /// What the columns are: `embed`, `block 1`, .., `partial`.
    pub sources: Vec<String>,
    /// What the numbers are.
    pub weighting: Weighting,
    /// Whether all tokens have the same weights.
    pub shared: bool,
}

impl Routing {
    /// Softmax weights that each token has of its own.
    #[must_use]
    pub fn per_token(site: u32, stream: u32, sources: Vec<String>) -> Self {
        Self {
            site,
            stream,
            sources,
            weighting: Weighting::Softmax,
            shared: false,
        }
    }

    /// Weights of a mechanism with one stream that are the same for all tokens.
    #[must_use]
    pub fn shared(site: u32, sources: Vec<String>, weighting: Weighting) -> Self {
        Self {
            weighting,
            shared: true,
            ..Self::per_token(site, 0, sources)
        }
    }

    /// Name of the tensor on a watching tape.
    #[must_use]
    pub fn tensor(&self) -> String {
        format!("routing.{}.{}", self.site, self.stream)
    }
}

/// Published gate values: columns of a tensor `[rows, width]` of a watching tape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Which sublayer's gate; `L` is the read-out.
    pub site: u32,
    /// What the checkpoint format calls it: `alpha`, `rho`, `beta`, `read`, `write`, `mix`.
    pub name: &'static str,
    /// Name of the tensor on a watching tape.
    pub tensor: String,
    /// Its columns.
    pub columns: std::ops::Range<usize>,
    /// What they are for each token: `[n]`, or a matrix `[n, n]`, row-major. The product is the number of columns.
    pub shape: Vec<usize>,
    /// Columns of the whole tensor.
    pub width: usize,
}

/// Prefix of the parameters that site `site` owns.
#[must_use]
pub fn site_prefix(config: &ModelConfig, site: u32) -> String {
    if site == config.sublayers() {
        return "model.final_".into();
    }
    format!(
        "model.layers.{}.{}",
        site / 2,
        if site.is_multiple_of(2) {
            "attn_"
        } else {
            "mlp_"
        }
    )
}

/// What people call the output of sublayers `first..=last`: `attn 1`, `mlp 1`, or `block 3` for the third block.
#[must_use]
pub fn source_name(block: u32, sublayers_per_block: u32) -> String {
    if sublayers_per_block == 1 {
        let kind = if block.is_multiple_of(2) {
            "attn"
        } else {
            "mlp"
        };
        format!("{kind} {}", block / 2 + 1)
    } else {
        format!("block {}", block + 1)
    }
}
