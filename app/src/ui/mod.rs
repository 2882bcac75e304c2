//! The window: draws [`Event`](crate::protocol::Event)s, sends [`Command`](crate::protocol::Command)s, never names the engine.
//!
//! ```text
//! controls (top)      one obvious Start, pause, step, learning rate, step counter
//! setup (left)        the configuration, what follows from it, the mechanism's equations
//! routing (middle)    the map of depth weights and its other views; interventions below it
//! curves (right)      losses, rates, sharpness, samples
//! scrubber (bottom)   recorded frames over training time
//! status (bottom)     device, speed, memory, log
//! ```
//!
//! [`Heard`] is all that is known from events; [`View`] is what the person has chosen to look at. A panel is one file: a
//! struct with its own small state and `show(&mut self, ui, heard, view, out)`, where `out` collects commands.

mod banners;
mod chart;
mod closing;
mod compare;
mod controls;
mod curve;
mod curves;
mod decimate;
mod depths;
mod diagnostics;
mod diff;
mod drafting;
mod focus;
mod format;
mod heard;
pub mod host;
mod interventions;
mod kept;
mod log;
mod looking;
mod palette;
mod routing;
mod rulers;
mod samples;
mod scales;
mod scrubber;
mod setup;
mod shortcuts;
mod smooth;
mod status;
mod taps;
mod theme;
mod ticks;
mod view;
mod window;

pub use heard::Heard;
pub use interventions::Interventions;
pub use kept::{Kept, Look};
pub use routing::Routing;
pub use rulers::Rulers;
pub use scrubber::Scrubber;
pub use view::{Axis, Moment, Tab, View};
pub use window::Window;
