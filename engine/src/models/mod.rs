//! Whole models.

pub mod config;
pub mod decoder;
pub mod plans;

pub use config::ModelConfig;
