//! Residual mechanisms: how sublayers read from, and write to, what earlier sublayers computed.

pub mod config;

pub use config::{
    DarRoute, DeltaMode, Gates, Granularity, Projection, ReadMode, ResidualConfig, TransparentInit,
};
