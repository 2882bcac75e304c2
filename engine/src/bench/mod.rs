//! What speed is compared with: the bytes and operations that a plan needs, counted from its kernel calls, and plans that
//! measure the device itself.
//!
//! Nothing here takes time: a caller with a clock runs the plans and divides.

pub mod anchors;
pub mod cases;
pub mod cost;
pub mod sizes;

pub use anchors::Anchors;
pub use cases::{OpCase, cases};
pub use cost::{Cost, call_cost};
pub use sizes::Size;
