//! What can be read off a model besides its loss.

pub mod routing_stats;

pub use crate::nn::residual::Weighting;
pub use routing_stats::{SiteStats, StreamStats, site_kind};
