//! The two number types of the CPU executor.

use std::fmt::Debug;
use std::iter::Sum;

use num_traits::{Float, NumAssign};

use super::{Twin, fast};
use crate::kernel::Kernel;

/// `f32`, what a person trains with, or `f64`, what the tests trust.
pub trait Real: Float + NumAssign + Sum + Debug + Default + Send + Sync + 'static {
    /// Bytes of one number.
    const BYTES: u64;

    /// Nearest number of this type.
    fn of(value: f64) -> Self;

    /// As `f64`, exactly.
    fn wide(self) -> f64;

    /// The fast version of a kernel, if this type has one.
    fn fast(kernel: &Kernel) -> Option<Twin<Self>>;

    /// `1 / (1 + e^-x)`.
    fn sigmoid(self) -> Self {
        Self::one() / (Self::one() + (-self).exp())
    }
}

impl Real for f32 {
    const BYTES: u64 = 4;

    #[expect(clippy::cast_possible_truncation, reason = "that is what it is for")]
    fn of(value: f64) -> Self {
        value as f32
    }

    fn wide(self) -> f64 {
        f64::from(self)
    }

    fn fast(kernel: &Kernel) -> Option<Twin<Self>> {
        fast::twin(kernel)
    }
}

impl Real for f64 {
    const BYTES: u64 = 8;

    fn of(value: f64) -> Self {
        value
    }

    fn wide(self) -> f64 {
        self
    }

    fn fast(_: &Kernel) -> Option<Twin<Self>> {
        None
    }
}
