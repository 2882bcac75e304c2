//! Operations: one file each, with its shape checks, its parameters, and which kernels compute it and its gradient.
//!
//! The maths stands at the top of the shader of the same name.

pub mod column_sum;
pub mod copy;
pub mod dual_gates;
pub mod dual_write;
pub mod rms_norm;
pub mod scaled_add;
