//! Runs plans on the CPU, in `f32` or `f64`.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;

use super::fast::threads;
use super::{CpuArg, CpuArgs, Real, Twin, plain};
use crate::error::{Error, Result, bytes_for_people};
use crate::executor::{
    BufferId, Counts, Data, Executor, NonFinite, Pending, ProgramId, Range, Values, Work,
    no_such_calls,
};
use crate::kernel::{Access, Element, Params};
use crate::plan::{BufferRef, External, Limits, Place, Plan};

#[derive(Debug)]
enum Buffer<T> {
    Floats(Vec<T>),
    Ints(Vec<u32>),
}

impl<T> Buffer<T> {
    fn len(&self) -> usize {
        match self {
            Self::Floats(values) => values.len(),
            Self::Ints(values) => values.len(),
        }
    }
}

#[derive(Debug)]
struct Call<T> {
    twin: Twin<T>,
    params: Arc<dyn Params>,
    args: Vec<(Range, Access)>,
    label: String,
    names: Vec<String>,
}

#[derive(Debug)]
struct Program<T> {
    calls: Vec<Call<T>>,
    buffers: Vec<BufferId>,
    externals: BTreeMap<External, BufferId>,
}

/// The CPU executor. In `f64` it runs the plain twins only; in `f32` the fast ones where they exist.
#[derive(Debug)]
pub struct CpuExecutor<T: Real> {
    buffers: Vec<Buffer<T>>,
    programs: Vec<Program<T>>,
    counts: Counts,
    memory: Option<u64>,
    plain_only: bool,
    poisoned: bool,
}

impl<T: Real> CpuExecutor<T> {
    /// An executor that may use `memory` bytes, if given.
    #[must_use]
    pub fn new(memory: Option<u64>) -> Self {
        Self {
            buffers: Vec::new(),
            programs: Vec::new(),
            counts: Counts::default(),
            memory,
            plain_only: false,
            poisoned: false,
        }
    }

    /// Use the plain twins even where fast ones exist: for tests.
    #[must_use]
    pub fn plain_only(mut self) -> Self {
        self.plain_only = true;
        self
    }

    /// For tests: fill the buffers of plans with NaN, so that a kernel that reads what nobody has written shows it.
    #[must_use]
    pub fn poisoned(mut self, on: bool) -> Self {
        self.poisoned = on;
        self
    }

    fn call(&mut self, program: usize, index: usize) {
        let call = &self.programs[program].calls[index];
        let mut args: CpuArgs<'_, T> = Default::default();
        for (arg, &(range, access)) in args.iter_mut().zip(&call.args) {
            *arg = slice(&mut self.buffers[range.buffer.0], range, access);
        }
        (call.twin)(call.params.as_any(), args);
        self.counts.dispatches += 1;
    }
}

/// Borrow a range of a buffer for as long as the caller likes.
#[expect(
    unsafe_code,
    reason = "arguments of one call are disjoint ranges of buffers, which the borrow checker cannot see"
)]
fn slice<'a, T>(buffer: &mut Buffer<T>, range: Range, access: Access) -> CpuArg<'a, T> {
    assert!(
        range.offset + range.len <= buffer.len(),
        "plans place ranges inside their buffers"
    );
    // SAFETY: the range is inside the buffer (asserted), whose heap block neither moves nor is freed during the call, since
    // the executor is borrowed mutably. `Plan::build` has refused every step in which a writable range overlaps another
    // argument, so a `Write` slice is unique and `Read` slices are only shared among themselves.
    unsafe {
        match (buffer, access) {
            (Buffer::Floats(v), Access::Read) => CpuArg::Read(std::slice::from_raw_parts(
                v.as_ptr().add(range.offset),
                range.len,
            )),
            (Buffer::Floats(v), Access::Write) => CpuArg::Write(std::slice::from_raw_parts_mut(
                v.as_mut_ptr().add(range.offset),
                range.len,
            )),
            (Buffer::Ints(v), Access::Read) => CpuArg::ReadInts(std::slice::from_raw_parts(
                v.as_ptr().add(range.offset),
                range.len,
            )),
            (Buffer::Ints(v), Access::Write) => CpuArg::WriteInts(std::slice::from_raw_parts_mut(
                v.as_mut_ptr().add(range.offset),
                range.len,
            )),
        }
    }
}

/// Bytes of the largest buffer: half of what addresses reach, which in WebAssembly is 2 GiB.
const LARGEST: u64 = isize::MAX as u64;

/// So many zeros; `None` if there is no memory for them.
fn zeros<E: Clone>(len: usize, zero: E) -> Option<Vec<E>> {
    // Tried first: `vec!` would end the program, but takes pages that are zero already.
    Vec::<E>::new().try_reserve_exact(len).ok()?;
    Some(vec![zero; len])
}

impl<T: Real> Executor for CpuExecutor<T> {
    fn limits(&self) -> Limits {
        Limits {
            binding: LARGEST,
            buffer: LARGEST,
            total: self.memory,
            float: T::BYTES,
            large_tiles: false,
        }
    }

    fn allocate(&mut self, label: &str, len: usize, element: Element) -> Result<BufferId> {
        let bytes = len as u64 * if element == Element::F32 { T::BYTES } else { 4 };
        if self.memory.is_some_and(|limit| bytes > limit) {
            return Err(Error::Memory {
                tensor: format!("`{label}`"),
                need: bytes_for_people(bytes),
                limit: format!(
                    "{} of memory are available",
                    bytes_for_people(self.memory.unwrap_or(0))
                ),
                advice: "lower model.width or model.layers".into(),
            });
        }
        let buffer = match element {
            Element::F32 => zeros(len, T::zero()).map(Buffer::Floats),
            Element::U32 => zeros(len, 0).map(Buffer::Ints),
        };
        self.buffers.push(buffer.ok_or_else(|| Error::Memory {
            tensor: format!("`{label}`"),
            need: bytes_for_people(bytes),
            limit: "the system gives no more memory".into(),
            advice: "lower train.batch, model.context, model.width or model.layers".into(),
        })?);
        self.counts.buffers += 1;
        Ok(BufferId(self.buffers.len() - 1))
    }

    fn load(&mut self, plan: &Plan, externals: &BTreeMap<External, BufferId>) -> Result<ProgramId> {
        let mut buffers = Vec::new();
        for spec in &plan.buffers {
            let buffer = self.allocate(&spec.label, spec.len, spec.element)?;
            if let Some(content) = &spec.content {
                self.write(buffer, 0, Data::F64(content))?;
            } else if let (true, Buffer::Floats(values)) =
                (self.poisoned, &mut self.buffers[buffer.0])
            {
                values.fill(T::nan());
            }
            buffers.push(buffer);
        }
        self.programs.push(Program {
            calls: Vec::new(),
            buffers,
            externals: externals.clone(),
        });
        let program = ProgramId(self.programs.len() - 1);
        for step in &plan.steps {
            let missing = || Error::Plan {
                kernel: step.kernel.id(),
                message: "has no CPU twin".into(),
            };
            let fast = if self.plain_only {
                None
            } else {
                T::fast(step.kernel)
            };
            let twin = fast.or_else(|| plain(step.kernel)).ok_or_else(missing)?;
            let args = step.args.iter().map(|&place| self.range(program, place));
            let args = args
                .zip(step.kernel.bindings.iter().map(|binding| binding.access))
                .collect();
            let call = Call {
                twin,
                params: step.params.clone(),
                args,
                label: step.label.clone(),
                names: step.names.clone(),
            };
            self.programs[program.0].calls.push(call);
        }
        Ok(program)
    }

    fn range(&self, program: ProgramId, place: Place) -> Range {
        let program = &self.programs[program.0];
        let buffer = match place.buffer {
            BufferRef::Own(number) => program.buffers[number],
            BufferRef::External(external) => program.externals[&external],
        };
        Range {
            buffer,
            offset: place.offset,
            len: place.len,
        }
    }

    fn write(&mut self, buffer: BufferId, offset: usize, data: Data<'_>) -> Result<()> {
        let buffer = &mut self.buffers[buffer.0];
        let (capacity, len) = (buffer.len(), data.len());
        let outside = || Error::Op {
            op: "write",
            message: format!("{len} elements from {offset} on do not fit {capacity}"),
        };
        if offset + len > capacity {
            return Err(outside());
        }
        match (buffer, data) {
            (Buffer::Floats(to), Data::F32(from)) => {
                to[offset..]
                    .iter_mut()
                    .zip(from)
                    .for_each(|(to, &from)| *to = T::of(f64::from(from)));
            }
            (Buffer::Floats(to), Data::F64(from)) => {
                to[offset..]
                    .iter_mut()
                    .zip(from)
                    .for_each(|(to, &from)| *to = T::of(from));
            }
            (Buffer::Ints(to), Data::U32(from)) => to[offset..offset + len].copy_from_slice(from),
            _ => {
                return Err(Error::Op {
                    op: "write",
                    message: "integers and floats do not mix".into(),
                });
            }
        }
        Ok(())
    }

    fn submit(&mut self, work: &[Work]) -> Result<()> {
        self.counts.submits += 1;
        for item in work {
            match *item {
                Work::Clear(buffer) => match &mut self.buffers[buffer.0] {
                    Buffer::Floats(values) => values.fill(T::zero()),
                    Buffer::Ints(values) => values.fill(0),
                },
                // Among the threads from the start: entering costs more than many a kernel.
                Work::Run(program) => threads::enter(|| {
                    (0..self.programs[program.0].calls.len())
                        .for_each(|index| self.call(program.0, index));
                }),
                Work::Repeat {
                    program,
                    first,
                    last,
                    times,
                } => {
                    if self.programs[program.0].calls.get(first..=last).is_none() {
                        return Err(no_such_calls(first, last));
                    }
                    threads::enter(|| {
                        for _ in 0..times {
                            (first..=last).for_each(|index| self.call(program.0, index));
                        }
                    });
                }
            }
        }
        Ok(())
    }

    fn read(&mut self, ranges: &[Range]) -> Result<Pending<Vec<Values>>> {
        let mut all = Vec::new();
        for range in ranges {
            let buffer = &self.buffers[range.buffer.0];
            if range.offset + range.len > buffer.len() {
                return Err(Error::Op {
                    op: "read",
                    message: format!("{range:?} is outside of {} elements", buffer.len()),
                });
            }
            let part = range.offset..range.offset + range.len;
            all.push(match buffer {
                Buffer::Floats(values) if T::BYTES == 8 => {
                    Values::F64(values[part].iter().map(|v| v.wide()).collect())
                }
                Buffer::Floats(values) => {
                    Values::F64(values[part].iter().map(|v| v.wide()).collect()).narrow()
                }
                Buffer::Ints(values) => Values::U32(values[part].to_vec()),
            });
        }
        Ok(Box::pin(ready(Ok(all))))
    }

    fn find_non_finite(&mut self, program: ProgramId) -> Pending<Option<NonFinite>> {
        for index in 0..self.programs[program.0].calls.len() {
            self.call(program.0, index);
            let call = &self.programs[program.0].calls[index];
            for ((range, access), name) in call.args.iter().zip(&call.names) {
                let Buffer::Floats(values) = &self.buffers[range.buffer.0] else {
                    continue;
                };
                let values = &values[range.offset..range.offset + range.len];
                if *access == Access::Write
                    && let Some(element) = values.iter().position(|v| !v.wide().is_finite())
                {
                    let found = NonFinite {
                        step: call.label.clone(),
                        tensor: name.clone(),
                        element,
                    };
                    return Box::pin(ready(Ok(Some(found))));
                }
            }
        }
        Box::pin(ready(Ok(None)))
    }

    fn profile(
        &mut self,
        program: ProgramId,
        clock: &dyn Fn() -> f64,
    ) -> Result<Pending<Option<Vec<f64>>>> {
        let calls = self.programs[program.0].calls.len();
        let mut seconds = Vec::with_capacity(calls);
        for index in 0..calls {
            let before = clock();
            threads::enter(|| self.call(program.0, index));
            seconds.push(clock() - before);
        }
        Ok(Box::pin(ready(Ok(Some(seconds)))))
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}

impl Values {
    /// Doubles that came from singles, as singles again.
    fn narrow(self) -> Self {
        Self::F32(self.into_f32())
    }
}
