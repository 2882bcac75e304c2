//! Runs plans on a GPU: binds everything when a plan is loaded, then replays a flat list of dispatches.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::kernel::{Pipeline, grid};
use super::profile;
use super::readback::{Source, submit_and_read};
use super::{Gpu, lock};
use crate::error::{Error, Result, bytes_for_people};
use crate::executor::{
    BufferId, Counts, Data, Executor, NonFinite, Pending, ProgramId, Range, Values, Work,
    is_non_finite, no_such_calls,
};
use crate::kernel::{Access, Element, Kernel};
use crate::plan::{BufferRef, External, Limits, Place, Plan};

/// The alignment of uniform ranges that every device accepts.
const UNIFORM_ALIGNMENT: usize = 256;
/// NaN elements behind each buffer of a poisoned executor.
const TAIL: usize = 64;

/// The GPU executor.
#[derive(Debug)]
pub struct GpuExecutor {
    shared: Arc<Shared>,
    buffers: Vec<Buffer>,
    programs: Vec<Arc<Program>>,
    memory: Option<u64>,
    /// Most dispatches of a submission.
    slice: Option<usize>,
    poisoned: bool,
    /// Plans get kernels with large tiles.
    large_tiles: bool,
}

/// What outlives a borrow of the executor: reads that have not arrived yet hold on to it.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) gpu: Arc<Gpu>,
    /// Staging buffers that nobody uses.
    pub(super) staging: Mutex<Vec<wgpu::Buffer>>,
    counts: Mutex<Counts>,
    /// Submissions that the device has not finished.
    in_flight: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Buffer {
    raw: wgpu::Buffer,
    len: usize,
    element: Element,
}

#[derive(Debug)]
struct Program {
    calls: Vec<Call>,
    buffers: Vec<BufferId>,
    externals: BTreeMap<External, BufferId>,
}

/// One dispatch, bound.
#[derive(Debug)]
pub(super) struct Call {
    pipeline: wgpu::ComputePipeline,
    bind_group: wgpu::BindGroup,
    groups: (u32, u32),
    label: String,
    /// The floats it writes and their names, for [`Executor::find_non_finite`].
    written: Vec<(Source, String)>,
}

impl GpuExecutor {
    /// An executor on an open device, that may use `memory` bytes, if given.
    #[must_use]
    pub fn new(gpu: Arc<Gpu>, memory: Option<u64>) -> Self {
        Self {
            shared: Arc::new(Shared {
                gpu,
                staging: Mutex::default(),
                counts: Mutex::default(),
                in_flight: Arc::default(),
            }),
            buffers: Vec::new(),
            programs: Vec::new(),
            memory,
            slice: None,
            poisoned: false,
            large_tiles: false,
        }
    }

    /// Whether plans for this executor get kernels with large tiles: faster where the GPU is a processor, which loads each number
    /// for each invocation; too large for the registers of a GPU.
    #[must_use]
    pub fn large_tiles(mut self, on: bool) -> Self {
        self.large_tiles = on;
        self
    }

    /// For tests: fill the buffers of plans with NaN, and bind 64 NaN elements behind the end of each buffer that a kernel
    /// binds as a whole. A kernel that reads what it has not written, or beyond the end, then shows it.
    #[must_use]
    pub fn poisoned(mut self, on: bool) -> Self {
        self.poisoned = on;
        self
    }

    /// Elements behind the end of a buffer.
    fn tail(&self, element: Element) -> usize {
        if self.poisoned && element == Element::F32 {
            TAIL
        } else {
            0
        }
    }

    /// Bind one kernel call of a plan.
    fn bind(
        &self,
        pipeline: &Pipeline,
        label: &str,
        params: wgpu::BufferBinding<'_>,
        args: &[Range],
    ) -> wgpu::BindGroup {
        let mut entries = vec![wgpu::BindGroupEntry {
            binding: 0,
            resource: wgpu::BindingResource::Buffer(params),
        }];
        entries.extend((1..).zip(args).map(|(binding, arg)| {
            let buffer = &self.buffers[arg.buffer.0];
            let whole = arg.offset == 0 && arg.len == buffer.len;
            let len = arg.len + if whole { self.tail(buffer.element) } else { 0 };
            wgpu::BindGroupEntry {
                binding,
                resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer: &buffer.raw,
                    offset: bytes(arg.offset),
                    size: wgpu::BufferSize::new(bytes(len)),
                }),
            }
        }));
        let device = &self.shared.gpu.device;
        device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(label),
            layout: &pipeline.layout,
            entries: &entries,
        })
    }

    /// The parameters of all steps in one uniform buffer, and where those of each step start.
    fn params(&self, plan: &Plan) -> Result<(wgpu::Buffer, Vec<(usize, usize)>)> {
        let (mut content, mut places) = (Vec::<u8>::new(), Vec::new());
        for step in &plan.steps {
            let mut words = step.params.words();
            words.resize(words.len().max(4), 0);
            content.resize(content.len().next_multiple_of(UNIFORM_ALIGNMENT), 0);
            places.push((content.len(), words.len() * 4));
            content.extend_from_slice(bytemuck::cast_slice(&words));
        }
        content.resize(content.len().max(16), 0);
        let buffer = self.shared.create_buffer(&wgpu::BufferDescriptor {
            label: Some("params"),
            size: content.len() as u64,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        })?;
        self.shared.gpu.queue.write_buffer(&buffer, 0, &content);
        Ok((buffer, places))
    }

    /// Check that a range is inside of its buffer.
    fn source(&self, op: &'static str, range: Range) -> Result<Source> {
        let buffer = &self.buffers[range.buffer.0];
        if range.offset + range.len > buffer.len {
            return Err(Error::Op {
                op,
                message: format!("{range:?} is outside of {} elements", buffer.len),
            });
        }
        Ok(Source {
            buffer: buffer.raw.clone(),
            offset: range.offset,
            len: range.len,
            element: buffer.element,
        })
    }

    /// Write NaN to a range of a buffer.
    fn poison(&self, buffer: &wgpu::Buffer, elements: std::ops::Range<usize>) {
        let nan = vec![f32::NAN; elements.len()];
        let queue = &self.shared.gpu.queue;
        queue.write_buffer(buffer, bytes(elements.start), bytemuck::cast_slice(&nan));
    }
}

/// Browsers free a buffer when their garbage collector finds it, which does not know how large it is.
#[cfg(target_arch = "wasm32")]
impl Drop for GpuExecutor {
    fn drop(&mut self) {
        for buffer in &self.buffers {
            buffer.raw.destroy();
        }
    }
}

#[cfg(target_arch = "wasm32")]
impl Drop for Shared {
    fn drop(&mut self) {
        for buffer in lock(&self.staging).iter() {
            buffer.destroy();
        }
    }
}

impl Call {
    /// Put the dispatch into a pass.
    pub(super) fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &self.bind_group, &[]);
        pass.dispatch_workgroups(self.groups.0, self.groups.1, 1);
    }
}

impl Shared {
    /// Create a buffer and count it.
    pub(super) fn create_buffer(
        &self,
        descriptor: &wgpu::BufferDescriptor<'_>,
    ) -> Result<wgpu::Buffer> {
        let doing = || {
            let label = descriptor.label.unwrap_or("a buffer");
            format!(
                "allocating `{label}` ({})",
                bytes_for_people(descriptor.size)
            )
        };
        let buffer = self
            .gpu
            .guarded(doing, || self.gpu.device.create_buffer(descriptor))?;
        lock(&self.counts).buffers += 1;
        Ok(buffer)
    }

    pub(super) fn encoder(&self) -> wgpu::CommandEncoder {
        self.gpu
            .device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor { label: None })
    }

    /// Submit what was recorded and count it. More slices follow if it is not `whole`: they count as one for who waits.
    pub(super) fn submit(
        &self,
        encoder: wgpu::CommandEncoder,
        doing: &str,
        whole: bool,
    ) -> Result<()> {
        self.gpu.guarded(
            || doing.into(),
            || {
                self.gpu.queue.submit([encoder.finish()]);
                if !whole {
                    return;
                }
                self.in_flight.fetch_add(1, Ordering::Relaxed);
                let in_flight = self.in_flight.clone();
                self.gpu.queue.on_submitted_work_done(move || {
                    in_flight.fetch_sub(1, Ordering::Relaxed);
                });
            },
        )?;
        lock(&self.counts).submits += 1;
        Ok(())
    }
}

/// Records dispatches and cuts them into submissions.
struct Recording<'a> {
    shared: &'a Shared,
    slice: usize,
    encoder: Option<wgpu::CommandEncoder>,
    pass: Option<wgpu::ComputePass<'static>>,
    /// Of the open submission.
    dispatches: usize,
    counts: Counts,
}

impl<'a> Recording<'a> {
    fn new(shared: &'a Shared, slice: Option<usize>) -> Self {
        Self {
            shared,
            slice: slice.unwrap_or(usize::MAX).max(1),
            encoder: None,
            pass: None,
            dispatches: 0,
            counts: Counts::default(),
        }
    }

    fn clear(&mut self, buffer: &Buffer) {
        self.pass = None; // a clear is no part of a pass
        let encoder = self.encoder.get_or_insert_with(|| self.shared.encoder());
        encoder.clear_buffer(&buffer.raw, 0, Some(bytes(buffer.len)));
    }

    fn dispatch(&mut self, call: &Call) -> Result<()> {
        if self.dispatches == self.slice {
            self.submit(false)?;
        }
        let encoder = self.encoder.get_or_insert_with(|| self.shared.encoder());
        let pass = self.pass.get_or_insert_with(|| {
            self.counts.passes += 1;
            encoder
                .begin_compute_pass(&wgpu::ComputePassDescriptor::default())
                .forget_lifetime()
        });
        call.record(pass);
        self.dispatches += 1;
        self.counts.dispatches += 1;
        Ok(())
    }

    /// The encoder with everything since the last submission; for the caller to add to and submit.
    fn take(&mut self) -> wgpu::CommandEncoder {
        self.pass = None; // ends the pass
        self.dispatches = 0;
        let mut counts = lock(&self.shared.counts);
        counts.passes += self.counts.passes;
        counts.dispatches += self.counts.dispatches;
        self.counts = Counts::default();
        drop(counts);
        self.encoder.take().unwrap_or_else(|| self.shared.encoder())
    }

    fn submit(&mut self, whole: bool) -> Result<()> {
        let encoder = self.take();
        self.shared.submit(encoder, "running a plan", whole)
    }
}

impl Executor for GpuExecutor {
    fn limits(&self) -> Limits {
        let (granted, tail) = (&self.shared.gpu.limits, bytes(self.tail(Element::F32)));
        Limits {
            binding: granted.max_storage_buffer_binding_size - tail,
            buffer: granted.max_buffer_size - tail,
            total: self.memory,
            float: 4,
            large_tiles: self.large_tiles,
        }
    }

    fn allocate(&mut self, label: &str, len: usize, element: Element) -> Result<BufferId> {
        let limits = self.limits();
        let limit = limits.buffer.min(self.memory.unwrap_or(u64::MAX));
        if bytes(len) > limit {
            return Err(Error::Memory {
                tensor: format!("`{label}`"),
                need: bytes_for_people(bytes(len)),
                limit: format!(
                    "one buffer of this device holds {}",
                    bytes_for_people(limit)
                ),
                advice: "lower model.width or model.layers".into(),
            });
        }
        let tail = self.tail(element);
        let raw = self.shared.create_buffer(&wgpu::BufferDescriptor {
            label: Some(label),
            size: bytes((len + tail).max(1)),
            usage: wgpu::BufferUsages::STORAGE
                | wgpu::BufferUsages::COPY_SRC
                | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        })?;
        if tail > 0 {
            self.poison(&raw, len..len + tail);
        }
        self.buffers.push(Buffer { raw, len, element });
        Ok(BufferId(self.buffers.len() - 1))
    }

    fn prepare(&mut self, kernel: &'static Kernel) -> Result<()> {
        let (_, made) = self.shared.gpu.pipeline(kernel)?;
        lock(&self.shared.counts).pipelines += u64::from(made);
        Ok(())
    }

    fn load(&mut self, plan: &Plan, externals: &BTreeMap<External, BufferId>) -> Result<ProgramId> {
        let mut buffers = Vec::new();
        for spec in &plan.buffers {
            let buffer = self.allocate(&spec.label, spec.len, spec.element)?;
            match &spec.content {
                Some(content) => self.write(buffer, 0, Data::F64(content))?,
                None if self.tail(spec.element) > 0 => {
                    self.poison(&self.buffers[buffer.0].raw, 0..spec.len);
                }
                None => {}
            }
            buffers.push(buffer);
        }
        let mut program = Program {
            calls: Vec::with_capacity(plan.steps.len()),
            buffers,
            externals: externals.clone(),
        };
        for step in &plan.steps {
            for place in &step.args {
                program.range(*place).ok_or_else(|| Error::Plan {
                    kernel: step.kernel.id(),
                    message: format!("{:?} was not given", place.buffer),
                })?;
            }
        }
        let (params, places) = self.params(plan)?;
        for (step, (offset, size)) in plan.steps.iter().zip(places) {
            self.prepare(step.kernel)?;
            let (pipeline, _) = self.shared.gpu.pipeline(step.kernel)?;
            let args: Vec<Range> = step
                .args
                .iter()
                .filter_map(|place| program.range(*place))
                .collect();
            let label = format!("{} ({})", step.label, step.kernel.id());
            let params = wgpu::BufferBinding {
                buffer: &params,
                offset: offset as u64,
                size: wgpu::BufferSize::new(size as u64),
            };
            let bind_group = self.shared.gpu.guarded(
                || format!("binding {label}"),
                || self.bind(&pipeline, &label, params, &args),
            )?;
            lock(&self.shared.counts).bind_groups += 1;
            let mut written = Vec::new();
            for ((range, binding), name) in args.iter().zip(step.kernel.bindings).zip(&step.names) {
                if binding.access == Access::Write && binding.element == Element::F32 {
                    written.push((self.source("load", *range)?, name.clone()));
                }
            }
            program.calls.push(Call {
                groups: grid(step.items, pipeline.invocations),
                pipeline: pipeline.pipeline,
                bind_group,
                label: step.label.clone(),
                written,
            });
        }
        self.programs.push(Arc::new(program));
        Ok(ProgramId(self.programs.len() - 1))
    }

    fn range(&self, program: ProgramId, place: Place) -> Range {
        self.programs[program.0]
            .range(place)
            .expect("loading has found every buffer of the plan")
    }

    fn write(&mut self, buffer: BufferId, offset: usize, data: Data<'_>) -> Result<()> {
        let to = &self.buffers[buffer.0];
        if offset + data.len() > to.len {
            return Err(Error::Op {
                op: "write",
                message: format!(
                    "{} elements from {offset} on do not fit {}",
                    data.len(),
                    to.len
                ),
            });
        }
        let floats = !matches!(data, Data::U32(_));
        if floats != (to.element == Element::F32) {
            return Err(Error::Op {
                op: "write",
                message: "integers and floats do not mix".into(),
            });
        }
        let rounded: Vec<f32>;
        let content: &[u8] = match data {
            Data::F32(values) => bytemuck::cast_slice(values),
            Data::U32(values) => bytemuck::cast_slice(values),
            Data::F64(values) => {
                rounded = values.iter().map(|&value| round(value)).collect();
                bytemuck::cast_slice(&rounded)
            }
        };
        let gpu = &self.shared.gpu;
        gpu.guarded(
            || "writing to a buffer".into(),
            || gpu.queue.write_buffer(&to.raw, bytes(offset), content),
        )
    }

    fn submit(&mut self, work: &[Work]) -> Result<()> {
        let mut recording = Recording::new(&self.shared, self.slice);
        for item in work {
            match *item {
                Work::Clear(buffer) => recording.clear(&self.buffers[buffer.0]),
                Work::Run(program) => {
                    for call in &self.programs[program.0].calls {
                        recording.dispatch(call)?;
                    }
                }
                Work::Repeat {
                    program,
                    first,
                    last,
                    times,
                } => {
                    let calls = self.programs[program.0].calls.get(first..=last);
                    let calls = calls.ok_or_else(|| no_such_calls(first, last))?;
                    for call in std::iter::repeat_n(calls, times).flatten() {
                        recording.dispatch(call)?;
                    }
                }
            }
        }
        recording.submit(true)
    }

    fn read(&mut self, ranges: &[Range]) -> Result<Pending<Vec<Values>>> {
        let sources = ranges.iter().map(|&range| self.source("read", range));
        let sources = sources.collect::<Result<Vec<_>>>()?;
        let encoder = self.shared.encoder();
        Ok(Box::pin(submit_and_read(&self.shared, encoder, sources)?))
    }

    fn find_non_finite(&mut self, program: ProgramId) -> Pending<Option<NonFinite>> {
        let (shared, program) = (self.shared.clone(), self.programs[program.0].clone());
        Box::pin(async move {
            for call in &program.calls {
                let mut recording = Recording::new(&shared, None);
                recording.dispatch(call)?;
                let encoder = recording.take();
                let sources = call.written.iter().map(|(source, _)| source.clone());
                let values = submit_and_read(&shared, encoder, sources.collect())?.await?;
                for (values, (_, name)) in values.into_iter().zip(&call.written) {
                    let values = values.into_f32();
                    if let Some(element) = values.iter().position(|&value| is_non_finite(value)) {
                        return Ok(Some(NonFinite {
                            step: call.label.clone(),
                            tensor: name.clone(),
                            element,
                        }));
                    }
                }
            }
            Ok(None)
        })
    }

    fn profile(
        &mut self,
        program: ProgramId,
        _: &dyn Fn() -> f64,
    ) -> Result<Pending<Option<Vec<f64>>>> {
        let program = self.programs[program.0].clone();
        profile::run(&self.shared, &program.calls)
    }

    fn set_slice(&mut self, dispatches: Option<usize>) {
        self.slice = dispatches;
    }

    fn in_flight(&mut self) -> Result<usize> {
        #[cfg(not(target_arch = "wasm32"))]
        self.shared.gpu.progress(false)?;
        self.shared.gpu.check()?;
        Ok(self.shared.in_flight.load(Ordering::Relaxed))
    }

    fn counts(&self) -> Counts {
        *lock(&self.shared.counts)
    }
}

impl Program {
    /// Where a place of the plan is; `None` if the caller has not given its buffer.
    fn range(&self, place: Place) -> Option<Range> {
        let buffer = match place.buffer {
            BufferRef::Own(number) => self.buffers.get(number)?,
            BufferRef::External(external) => self.externals.get(&external)?,
        };
        Some(Range {
            buffer: *buffer,
            offset: place.offset,
            len: place.len,
        })
    }
}

/// Elements of four bytes.
fn bytes(elements: usize) -> u64 {
    elements as u64 * 4
}

#[expect(clippy::cast_possible_truncation, reason = "GPUs compute in f32")]
fn round(value: f64) -> f32 {
    value as f32
}
