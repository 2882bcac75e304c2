//! Building blocks of models: layers, and the mechanisms that connect them through depth.

pub mod about;
pub mod attention;
pub mod experts;
pub mod feed_forward;
pub mod residual;
pub mod rms_norm;
pub mod swiglu;

/// The shape of a batch of token sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Sequences, `B`.
    pub sequences: u32,
    /// Tokens of each, `T`.
    pub context: u32,
}

impl Batch {
    /// Tokens in all, `B T`.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.sequences * self.context
    }
}
