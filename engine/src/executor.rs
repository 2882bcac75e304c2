//! What runs plans: the interface that the CPU and the GPU executor share.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::error::{Error, Result};
use crate::kernel::{Element, Kernel};
use crate::plan::{External, Limits, Place, Plan};

/// Number of a buffer of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferId(pub(crate) usize);

/// Number of a loaded plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProgramId(pub(crate) usize);

/// A range of a buffer, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The buffer.
    pub buffer: BufferId,
    /// First element.
    pub offset: usize,
    /// Number of elements.
    pub len: usize,
}

/// Numbers on their way to a buffer.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// Single precision.
    F32(&'a [f32]),
    /// Double precision, rounded if the executor computes in `f32`.
    F64(&'a [f64]),
    /// Unsigned integers.
    U32(&'a [u32]),
}

impl Data<'_> {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::U32(values) => values.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Numbers read from a buffer.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Single precision, bit for bit.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
    /// Unsigned integers.
    U32(Vec<u32>),
}

impl Values {
    /// As double precision, which holds every value of the three types exactly.
    #[must_use]
    pub fn to_f64(&self) -> Vec<f64> {
        match self {
            Self::F32(values) => values.iter().map(|&v| f64::from(v)).collect(),
            Self::F64(values) => values.clone(),
            Self::U32(values) => values.iter().map(|&v| f64::from(v)).collect(),
        }
    }

    /// As single precision.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "asked for by the caller")]
    pub fn into_f32(self) -> Vec<f32> {
        match self {
            Self::F32(values) => values,
            Self::F64(values) => values.iter().map(|&v| v as f32).collect(),
            Self::U32(values) => values.iter().map(|&v| v as f32).collect(),
        }
    }
}

/// One thing to do in a submission, in order.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// Fill a buffer with zeros. All clears must come first: they would cut the compute pass.
    Clear(BufferId),
    /// Execute all steps of a program.
    Run(ProgramId),
    /// Execute the steps `first` to `last` of a program `times` times over: for measurements.
    Repeat {
        /// The program.
        program: ProgramId,
        /// Number of the first step.
        first: usize,
        /// Number of the last step.
        last: usize,
        /// How often.
        times: usize,
    },
}

/// How often expensive things have happened since the executor was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Submissions to the device.
    pub submits: u64,
    /// Compute passes.
    pub passes: u64,
    /// Kernel calls.
    pub dispatches: u64,
    /// Buffers created.
    pub buffers: u64,
    /// Bind groups created.
    pub bind_groups: u64,
    /// Pipelines created.
    pub pipelines: u64,
}

/// The first tensor with a NaN or an infinity in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NonFinite {
    /// Where in the model: `layers.2.mlp / rms_norm`.
    pub step: String,
    /// The tensor that the kernel wrote.
    pub tensor: String,
    /// The first element that is not finite.
    pub element: usize,
}

/// A result that arrives later: immediately on the CPU, after a map on a GPU.
pub type Pending<T> = Pin<Box<dyn Future<Output = Result<T>>>>;

/// The result, if it has arrived; then drop `pending`. Never waits: for callers that look in again later.
pub fn arrived<T>(pending: &mut Pending<T>) -> Option<Result<T>> {
    match pending
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

/// Something that holds buffers and runs plans.
pub trait Executor {
    /// What it can hold.
    fn limits(&self) -> Limits;

    /// A buffer of zeros.
    ///
    /// # Errors
    /// If it does not fit.
    fn allocate(&mut self, label: &str, len: usize, element: Element) -> Result<BufferId>;

    /// Prepare a plan: create its buffers, compile its kernels, bind everything.
    ///
    /// # Errors
    /// If a kernel does not compile, or a buffer of `externals` is missing.
    fn load(&mut self, plan: &Plan, externals: &BTreeMap<External, BufferId>) -> Result<ProgramId>;

    /// Compile a kernel before [`Executor::load`] needs it: between two calls a window can show how far it is.
    ///
    /// # Errors
    /// If it does not compile.
    fn prepare(&mut self, _kernel: &'static Kernel) -> Result<()> {
        Ok(())
    }

    /// Where a place of a loaded plan is.
    fn range(&self, program: ProgramId, place: Place) -> Range;

    /// Write to a buffer from element `offset` on.
    ///
    /// # Errors
    /// If the data does not fit the buffer.
    fn write(&mut self, buffer: BufferId, offset: usize, data: Data<'_>) -> Result<()>;

    /// Do several things in one submission.
    ///
    /// # Errors
    /// If the device fails.
    fn submit(&mut self, work: &[Work]) -> Result<()>;

    /// Read ranges, after everything submitted so far.
    ///
    /// # Errors
    /// If a range is outside of its buffer.
    fn read(&mut self, ranges: &[Range]) -> Result<Pending<Vec<Values>>>;

    /// Run a program one kernel at a time and name the first tensor that is not finite. Slow; for explanations.
    fn find_non_finite(&mut self, program: ProgramId) -> Pending<Option<NonFinite>>;

    /// Run a program once, measuring every kernel call by itself; seconds, in the order of the plan. GPUs measure with their
    /// own clock, others with `clock`. `None` if the device has no such clock. Slower than a run: never the time of a step.
    ///
    /// # Errors
    /// If the device fails.
    fn profile(
        &mut self,
        program: ProgramId,
        clock: &dyn Fn() -> f64,
    ) -> Result<Pending<Option<Vec<f64>>>>;

    /// Submit at most this many kernel calls at once, for devices that also draw the screen or whose drivers kill long
    /// submissions. Results do not depend on it.
    fn set_slice(&mut self, _dispatches: Option<usize>) {}

    /// Submissions that are not finished. Never waits; a caller that sees more than two should submit nothing.
    ///
    /// # Errors
    /// If the device is lost.
    fn in_flight(&mut self) -> Result<usize> {
        Ok(0)
    }

    /// Running totals.
    fn counts(&self) -> Counts;
}

/// [`Work::Repeat`] names calls that the program does not have.
pub(crate) fn no_such_calls(first: usize, last: usize) -> Error {
    Error::Op {
        op: "repeat",
        message: format!("the program has no calls {first} to {last}"),
    }
}

/// Whether a number is NaN or infinite, by its bits: comparisons are optimised away on some devices.
#[must_use]
pub fn is_non_finite(value: f32) -> bool {
    value.to_bits() & 0x7f80_0000 == 0x7f80_0000
}
