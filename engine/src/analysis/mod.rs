//! What can be read off a model besides its loss.

pub mod bootstrap;
pub mod cka;
pub mod distance;
pub mod expert_load;
pub mod rank;
pub mod routing_stats;
pub mod source_stats;
pub mod unfolded;

pub use crate::nn::residual::Weighting;
pub use bootstrap::{Bootstrap, Estimate};
pub use expert_load::{ExpertLoad, expert_load};
pub use routing_stats::{SiteStats, StreamStats, site_kind};
