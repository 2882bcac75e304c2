//! What a front end says to the engine's side, and what it hears: plain values that serialise.
//!
//! A window and a browser page send [`Command`]s and draw [`Event`]s; neither names the engine. On a desktop they travel
//! through channels to a thread, in a browser through messages to a worker.

mod command;
mod event;
mod frame;
mod line;
mod not_finite;

pub use command::{AUTOSAVE, Command, Draft, Intervention, NamedFiles, Piece, RouteEdit, SHARE};
pub use event::{
    About, Checked, Derived, DeviceInfo, Effect, Event, Exported, FieldError, KeptRun, Part, Peek,
    RunInfo, RunState, Sampled, Timing, Token, Trace, TraceSite,
};
pub use frame::{Depth, Frame, Site, SiteKind, Stream, Unfolded};
pub use line::Line;
