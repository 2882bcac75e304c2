//! What the command line, the window and the browser share: a run's configuration, its folder, its records, the training
//! session, and the map of routing weights.
//!
//! Only `cli` and `main` print, and only they end the process.
#![warn(missing_docs)]

pub mod analyses;
pub mod backend;
pub mod catalogue;
pub mod config;
pub mod expert_map;
pub mod files;
pub mod form;
pub mod frame_log;
pub mod heat_map;
pub mod names;
pub mod protocol;
pub mod records;
pub mod report;
pub mod run_dir;
pub mod run_name;
pub mod sample_log;
pub mod sampler;
pub mod session;
pub mod texts;
pub mod ui;

#[cfg(not(target_arch = "wasm32"))]
pub mod cli;
#[cfg(not(target_arch = "wasm32"))]
pub mod convert;
#[cfg(not(target_arch = "wasm32"))]
pub mod desk;
#[cfg(not(target_arch = "wasm32"))]
pub mod html;
#[cfg(not(target_arch = "wasm32"))]
pub mod progress;
#[cfg(not(target_arch = "wasm32"))]
pub mod sweep;
