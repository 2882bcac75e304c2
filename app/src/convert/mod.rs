//! A trained standard model as the start of another mechanism's: its weights are carried over, and what the mechanism adds
//! gets its initial values.
//!
//! What that does to the held-out loss follows from how the mechanism starts ([`start`]) and is measured, never assumed.

pub mod origin;
pub mod start;
pub mod weights;

pub use origin::Origin;
pub use start::{Start, start_of};
pub use weights::carry;
