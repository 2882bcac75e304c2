//! Operations: each against finite differences, its twin in `f64`, and on every executor. One module per op.

mod rms_norm;
