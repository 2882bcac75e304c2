//! Whole models.

pub mod config;

pub use config::ModelConfig;
