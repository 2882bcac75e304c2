//! Errors: each says what was wrong, what was expected and, where the reader can do something, what to do.

use crate::shape::Shape;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong in the engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A tensor does not fit the operation.
    #[error("{op}: {what} has shape {got}, expected {expected}")]
    Shape {
        /// Operation.
        op: &'static str,
        /// Which argument.
        what: &'static str,
        /// Expected shape, in words or numbers.
        expected: String,
        /// The shape it has.
        got: Shape,
    },
    /// An operation was given arguments that it cannot take.
    #[error("{op}: {message}")]
    Op {
        /// Operation.
        op: &'static str,
        /// What is wrong.
        message: String,
    },
    /// A configuration value is impossible.
    #[error("{field}: {message}")]
    Config {
        /// Key, as written in the configuration, such as `model.heads`.
        field: String,
        /// What is wrong and what is accepted.
        message: String,
    },
    /// A dispatch would bind the same bytes twice, one of them writable.
    #[error("{kernel} binds `{a}` and `{b}` to overlapping bytes and writes one of them")]
    Aliasing {
        /// Kernel and entry point.
        kernel: String,
        /// One binding.
        a: &'static str,
        /// The other.
        b: &'static str,
    },
    /// The plan does not fit the device.
    #[error("{tensor} needs {need}, but {limit}; {advice}")]
    Memory {
        /// Name of the tensor or buffer.
        tensor: String,
        /// Its size, for people.
        need: String,
        /// The limit that it breaks.
        limit: String,
        /// The setting to lower.
        advice: String,
    },
    /// Broken plan: a bug in an op, caught while recording.
    #[error("{kernel}: {message}")]
    Plan {
        /// Kernel and entry point.
        kernel: String,
        /// What does not fit.
        message: String,
    },
    /// A checkpoint or data file cannot be used.
    #[error("{0}")]
    File(String),
    /// No device fits the request.
    #[error("{0}")]
    Device(String),
    /// The GPU driver reported an error.
    #[error("the GPU reported an error while {doing}: {message}")]
    Gpu {
        /// What the engine was doing.
        doing: String,
        /// The driver's words.
        message: String,
    },
    /// The device is gone.
    #[error("the GPU device was lost ({0})")]
    DeviceLost(String),
}

impl Error {
    /// A tensor that does not fit an operation.
    pub fn shape(
        op: &'static str,
        what: &'static str,
        expected: impl std::fmt::Debug,
        got: Shape,
    ) -> Self {
        Self::Shape {
            op,
            what,
            expected: format!("{expected:?}"),
            got,
        }
    }

    /// An impossible configuration value.
    pub fn config(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Config {
            field: field.into(),
            message: message.into(),
        }
    }
}

/// A byte count for people: `157 MB`.
#[must_use]
pub fn bytes_for_people(bytes: u64) -> String {
    let value = bytes as f64;
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", value / 1e6),
        _ => format!("{:.2} GB", value / 1e9),
    }
}
