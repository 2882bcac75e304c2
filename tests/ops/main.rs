//! Operations: each against finite differences, its twin in `f64`, and on every executor. One module per op.

mod add;
mod attention;
mod column_sum;
mod copy;
mod cross_entropy;
mod depth_attention;
mod dual_gates;
mod dual_write;
mod embedding;
mod gated_add;
mod inverse_rms;
mod matmul;
mod mhc_gates;
mod random_shapes;
mod rms_norm;
mod rope;
mod router;
mod router_loss;
mod scaled_add;
mod slot_add;
mod softmax;
mod static_mix;
mod stream_coefficients;
mod stream_mix;
mod swiglu;
mod threads;
