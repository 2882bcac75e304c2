//! Braid in a browser.
//!
//! ```text
//! index.html -> boot.js     looks for WebGL2, loads both modules, shows how far
//!               braid-page    (src/page/)    the window, drawn with WebGL2; never waits
//!               worker-start.js -> braid-worker (src/worker/)  a `Backend` with a WebGPU device of its own, or the CPU executor
//! ```
//!
//! Between them travel [`Command`](braid_app::protocol::Command)s and [`Event`](braid_app::protocol::Event)s, as bytes.
#![warn(missing_docs)]

pub mod keeping;
pub mod no_gpu;
pub mod wire;
