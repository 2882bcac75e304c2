//! Building blocks of models: layers, and the mechanisms that connect them through depth.

pub mod feed_forward;
pub mod residual;
