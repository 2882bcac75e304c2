//! Braid's engine: records transformers with routed residuals as flat plans of kernel calls, and runs them on a GPU
//! (WGSL) or on the CPU (a twin of every kernel).
//!
//! Reading order: `shaders/rms_norm.wgsl` beside [`ops::rms_norm`], then [`tape`], [`plan`], [`executor`],
//! [`nn::residual`], [`models::decoder`], [`trainer`].
//!
//! The engine has no files, no clock, no user interface and no arguments: bytes and times are passed in.
#![warn(missing_docs)]

pub mod analysis;
pub mod bench;
pub mod checkpoint;
pub mod cpu;
pub mod data;
pub mod device;
pub mod error;
pub mod executor;
pub mod golden;
pub mod gpu;
pub mod kernel;
pub mod models;
pub mod nn;
pub mod ops;
pub mod optim;
pub mod params;
pub mod plan;
pub mod random;
pub mod runtime;
pub mod sample;
pub mod shape;
pub mod tape;
pub mod trainer;

pub use error::{Error, Result};
pub use shape::Shape;
