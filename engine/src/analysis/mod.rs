//! What can be read off a model besides its loss.

pub mod routing_stats;

pub use routing_stats::{SiteStats, StreamStats, site_kind};
