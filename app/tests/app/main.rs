//! Tests of the application: configuration, folders, records, the map, and the program itself.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod analyses;
mod backend;
mod config;
mod convert;
mod expert_map;
mod form;
mod heat_map;
mod list;
mod looking;
mod program;
mod report;
mod run_dir;
mod samples;
mod settings;
mod sweep;
mod talk;
