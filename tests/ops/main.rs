//! Operations: each against finite differences, its twin in `f64`, and on every executor. One module per op.

<<<<<<< HEAD
mod add;
mod attention;
mod cross_entropy;
mod depth_attention;
mod dual_gates;
mod dual_write;
mod embedding;
mod matmul;
=======
mod column_sum;
mod copy;
>>>>>>> 3a0df73 (Test shaders, import rules and plans on the no-op device)
mod rms_norm;
mod rope;
mod scaled_add;
mod slot_add;
mod swiglu;
