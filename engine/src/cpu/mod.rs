//! The CPU executor: every kernel entry point has a twin here, a plain function of the same name over slices.
//!
//! Twins are generic over `f32` and `f64`. In `f64` they are the oracle of every test: plain and obviously right. Where it
//! pays, `fast/` has a second version in `f32`, tested against the plain one. A twin does the work of *all* invocations of
//! a dispatch; sums run in a fixed order, so the same plan gives the same bits for any number of threads.

mod execute;
pub mod fast;
pub mod real;
mod twins;

mod adamw;
mod add;
mod anchor;
mod attention;
mod clip;
mod column_sum;
mod copy;
mod cross_entropy;
mod depth_attention;
mod depth_merge;
mod dual_gates;
mod dual_write;
mod edit_weights;
mod embedding;
mod expert_bias;
mod expert_rows;
mod expert_sort;
mod gated_add;
mod grouped_matmul;
mod inverse_rms;
mod kl_divergence;
mod matmul;
mod mhc_gates;
mod muon;
mod newton_schulz;
mod replace;
mod rms_norm;
mod rope;
mod router;
mod router_loss;
mod scaled_add;
mod slot_add;
mod softmax;
mod square_sum;
mod static_mix;
mod stream_coefficients;
mod stream_mix;
mod swiglu;

use std::any::Any;

pub use execute::CpuExecutor;
pub use real::Real;
pub(crate) use twins::plain;

/// A kernel argument on the CPU.
#[derive(Debug, Default)]
pub enum CpuArg<'a, T> {
    /// No argument.
    #[default]
    None,
    /// Floats to read.
    Read(&'a [T]),
    /// Floats to read and write.
    Write(&'a mut [T]),
    /// Integers to read.
    ReadInts(&'a [u32]),
    /// Integers to read and write.
    WriteInts(&'a mut [u32]),
}

/// Loading a plan has compared each argument with the kernel's bindings.
const CHECKED: &str =
    "arguments were checked against the kernel's bindings when the plan was built";

impl<'a, T> CpuArg<'a, T> {
    /// Floats to read.
    ///
    /// # Panics
    /// Never on a plan that was built: its arguments were checked then.
    #[must_use]
    pub fn read(self) -> &'a [T] {
        match self {
            Self::Read(values) => values,
            _ => panic!("{CHECKED}"),
        }
    }

    /// Floats to read and write.
    ///
    /// # Panics
    /// Never on a plan that was built: its arguments were checked then.
    #[must_use]
    pub fn write(self) -> &'a mut [T] {
        match self {
            Self::Write(values) => values,
            _ => panic!("{CHECKED}"),
        }
    }

    /// Integers to read.
    ///
    /// # Panics
    /// Never on a plan that was built: its arguments were checked then.
    #[must_use]
    pub fn ints(self) -> &'a [u32] {
        match self {
            Self::ReadInts(values) => values,
            _ => panic!("{CHECKED}"),
        }
    }

    /// Integers to read and write.
    ///
    /// # Panics
    /// Never on a plan that was built: its arguments were checked then.
    #[must_use]
    pub fn write_ints(self) -> &'a mut [u32] {
        match self {
            Self::WriteInts(values) => values,
            _ => panic!("{CHECKED}"),
        }
    }
}

/// Whether a kernel has a plain twin: a test asks it of all.
#[must_use]
pub fn has_twin(kernel: &crate::kernel::Kernel) -> bool {
    plain::<f64>(kernel).is_some()
}

/// Threads that the fast twins use.
#[must_use]
pub fn threads() -> usize {
    #[cfg(not(target_arch = "wasm32"))]
    return rayon::current_num_threads();
    #[cfg(target_arch = "wasm32")]
    1
}

/// All arguments of one kernel call; at most eight, as many as WebGPU has bindings.
pub type CpuArgs<'a, T> = [CpuArg<'a, T>; 8];

/// The CPU version of a kernel entry point.
pub type Twin<T> = fn(params: &dyn Any, args: CpuArgs<'_, T>);

/// The concrete parameters of a twin.
///
/// # Panics
/// If the twin is registered under another kernel's name: every kernel test would fail.
pub(crate) fn params<P: 'static>(params: &dyn Any) -> &P {
    params
        .downcast_ref()
        .expect("the twin table pairs each kernel with its own params type")
}
