//! Tests of the application: configuration, folders, records, the map, and the program itself.

mod config;
mod heat_map;
mod program;
mod run_dir;
