//! Operations: one file each, with its shape checks, its parameters, and which kernels compute it and its gradient.
//!
//! The maths stands at the top of the shader of the same name.

pub mod add;
pub mod anchor;
pub mod attention;
pub mod column_sum;
pub mod copy;
pub mod cross_entropy;
pub mod depth_attention;
pub mod depth_merge;
pub mod dual_gates;
pub mod dual_write;
pub mod edit_weights;
pub mod embedding;
pub mod expert_rows;
pub mod expert_sort;
pub mod gated_add;
pub mod grouped_matmul;
pub mod inverse_rms;
pub mod kl_divergence;
pub mod matmul;
pub mod mhc_gates;
pub mod replace;
pub mod rms_norm;
pub mod rope;
pub mod router;
pub mod router_loss;
pub mod scaled_add;
pub mod slot_add;
pub mod softmax;
pub mod static_mix;
pub mod stream_coefficients;
pub mod stream_mix;
pub mod swiglu;
