//! The files of a browser's worker: they behave as `std::fs` does, and a run in them can be cut off anywhere.
//!
//! `run_dir.rs` and `frame_log.rs` are compiled here a second time, over the tree in memory instead of a disk: as they are
//! compiled for a browser, but each change is seen.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod files;
#[expect(dead_code, unreachable_pub, reason = "the source of the library")]
#[path = "../../src/frame_log.rs"]
mod frame_log;
#[expect(dead_code, unreachable_pub, reason = "the source of the library")]
#[path = "../../src/run_dir.rs"]
mod run_dir;
#[expect(unreachable_pub, reason = "the source of the library")]
#[path = "../../src/sample_log.rs"]
mod sample_log;

mod cut;
mod same;

use braid_app::{protocol, records};
