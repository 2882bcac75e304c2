//! What can be read off a model besides its loss.

pub mod expert_load;
pub mod routing_stats;
pub mod unfolded;

pub use crate::nn::residual::Weighting;
pub use expert_load::{ExpertLoad, expert_load};
pub use routing_stats::{SiteStats, StreamStats, site_kind};
