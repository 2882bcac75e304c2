//! Operations: each against finite differences, its twin in `f64`, and on every executor. One module per op.

mod dual_gates;
mod dual_write;
mod rms_norm;
mod scaled_add;
