//! Whole models.

pub mod config;
pub mod decoder;
pub mod norms;
pub mod plans;

pub use config::ModelConfig;
