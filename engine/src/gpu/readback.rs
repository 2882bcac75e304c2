//! Reading buffers: copy to a staging buffer, map it, hand out the numbers when they have arrived.
//!
//! Staging buffers go back to a pool, so that reading the same ranges again and again creates nothing. A read that is
//! dropped before it arrives returns its buffers too.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};

use super::execute::Shared;
use super::lock;
use crate::error::{Error, Result};
use crate::executor::Values;
use crate::kernel::Element;

/// Larger reads are cut into pieces of this many bytes, which every device can allocate.
const LARGEST: u64 = 64 << 20;
/// Staging buffers are powers of two from this size on, so that a few of them serve all reads.
const SMALLEST: u64 = 4 << 10;
/// The pool keeps at most this many bytes between reads.
const KEPT: u64 = 128 << 20;

/// A range to read, with its buffer.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) buffer: wgpu::Buffer,
    pub(super) offset: usize,
    pub(super) len: usize,
    pub(super) element: Element,
}

/// A part of a range in a staging buffer, in bytes.
#[derive(Debug)]
struct Piece {
    source: usize,
    start: u64,
    bytes: u64,
}

/// A staging buffer that is being filled, and what lies in it.
#[derive(Debug)]
struct Landing {
    shared: Arc<Shared>,
    buffer: wgpu::Buffer,
    state: Arc<Mutex<State>>,
    pieces: Vec<Piece>,
    used: u64,
}

#[derive(Debug)]
enum State {
    Waiting(Option<Waker>),
    Mapped,
    Failed,
    /// Nobody waits any more: the callback gives the buffer back.
    Abandoned(wgpu::Buffer),
}

/// Record copies of all `sources` behind whatever `encoder` holds, submit it, and promise the numbers.
pub(super) fn submit_and_read(
    shared: &Arc<Shared>,
    mut encoder: wgpu::CommandEncoder,
    sources: Vec<Source>,
) -> Result<impl Future<Output = Result<Vec<Values>>> + 'static> {
    let mut landings: Vec<Landing> = Vec::new();
    let total: u64 = sources.iter().map(|source| source.len as u64 * 4).sum();
    let mut left = total;
    for (number, source) in sources.iter().enumerate() {
        let (mut from, mut bytes) = (source.offset as u64 * 4, source.len as u64 * 4);
        while bytes > 0 {
            if landings.last().is_none_or(|last| last.used == last.room()) {
                landings.push(Landing::new(shared, left)?);
            }
            let Some(landing) = landings.last_mut() else {
                break;
            };
            let part = bytes.min(landing.room() - landing.used);
            encoder.copy_buffer_to_buffer(
                &source.buffer,
                from,
                &landing.buffer,
                landing.used,
                Some(part),
            );
            landing.pieces.push(Piece {
                source: number,
                start: landing.used,
                bytes: part,
            });
            landing.used += part;
            (from, bytes, left) = (from + part, bytes - part, left - part);
        }
    }
    shared.submit(encoder, "reading a buffer", true)?;
    for landing in &landings {
        landing.map();
    }
    Ok(collect(landings, sources))
}

/// Wait for all pieces and put them together.
async fn collect(mut landings: Vec<Landing>, sources: Vec<Source>) -> Result<Vec<Values>> {
    let mut values: Vec<Values> = sources
        .iter()
        .map(|source| match source.element {
            Element::F32 => Values::F32(Vec::with_capacity(source.len)),
            Element::U32 => Values::U32(Vec::with_capacity(source.len)),
        })
        .collect();
    for landing in &mut landings {
        (&mut *landing).await?;
        let mapped = landing.buffer.get_mapped_range(0..landing.used);
        let mapped = mapped.map_err(|error| Error::Gpu {
            doing: "reading a buffer".into(),
            message: error.to_string(),
        })?;
        for piece in &landing.pieces {
            let bytes = &mapped[piece.start as usize..][..piece.bytes as usize];
            // Mapped memory need not be aligned in browsers.
            match &mut values[piece.source] {
                Values::F32(to) => to.extend(words(bytes).map(f32::from_bits)),
                Values::U32(to) => to.extend(words(bytes)),
                Values::F64(_) => {}
            }
        }
    }
    Ok(values)
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|word| u32::from_le_bytes(*word))
}

impl Landing {
    /// A staging buffer from the pool, or a new one, for as much of `bytes` as one buffer takes.
    fn new(shared: &Arc<Shared>, bytes: u64) -> Result<Self> {
        let size = bytes.clamp(SMALLEST, LARGEST).next_power_of_two();
        let pooled = {
            let mut pool = lock(&shared.staging);
            let fits = pool.iter().position(|buffer| buffer.size() == size);
            fits.map(|position| pool.swap_remove(position))
        };
        let buffer = match pooled {
            Some(buffer) => buffer,
            None => shared.create_buffer(&wgpu::BufferDescriptor {
                label: Some("staging"),
                size,
                usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })?,
        };
        Ok(Self {
            shared: shared.clone(),
            buffer,
            state: Arc::new(Mutex::new(State::Failed)),
            pieces: Vec::new(),
            used: 0,
        })
    }

    fn room(&self) -> u64 {
        self.buffer.size()
    }

    /// Ask for the buffer's content.
    fn map(&self) {
        *lock(&self.state) = State::Waiting(None);
        let (state, pool) = (self.state.clone(), Arc::downgrade(&self.shared));
        let arrived = move |result: Result<(), wgpu::BufferAsyncError>| {
            let mut state = lock(&state);
            let next = if result.is_ok() {
                State::Mapped
            } else {
                State::Failed
            };
            match std::mem::replace(&mut *state, next) {
                State::Waiting(Some(waker)) => waker.wake(),
                State::Abandoned(buffer) if result.is_ok() => give_back(&pool, buffer),
                _ => {}
            }
        };
        self.buffer
            .map_async(wgpu::MapMode::Read, 0..self.used, arrived);
    }
}

impl Future for &mut Landing {
    type Output = Result<()>;

    /// Native devices make progress only when polled. A waker that does nothing means that the caller looks in again
    /// later: then this never blocks. Otherwise it waits for the device, so that any executor of futures will do.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *lock(&self.state) {
            State::Mapped => return Poll::Ready(Ok(())),
            State::Failed => {
                return Poll::Ready(Err(self.failure("the buffer could not be mapped")));
            }
            State::Waiting(waker) => *waker = Some(context.waker().clone()),
            State::Abandoned(_) => {}
        }
        #[cfg(not(target_arch = "wasm32"))]
        {
            let wait = !context.waker().will_wake(Waker::noop());
            self.shared.gpu.progress(wait)?;
            match &*lock(&self.state) {
                State::Mapped => Poll::Ready(Ok(())),
                // After a wait: another thread polled the same device, and is about to call back for this buffer too.
                State::Waiting(_) => Poll::Pending,
                _ => Poll::Ready(Err(self.failure("the buffer was not mapped"))),
            }
        }
        #[cfg(target_arch = "wasm32")]
        Poll::Pending
    }
}

impl Landing {
    /// Why mapping failed: the device's own words, if it has any.
    fn failure(&self, message: &str) -> Error {
        self.shared.gpu.check().err().unwrap_or_else(|| Error::Gpu {
            doing: "reading a buffer".into(),
            message: message.into(),
        })
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        match &*state {
            State::Mapped => give_back(&Arc::downgrade(&self.shared), self.buffer.clone()),
            State::Waiting(_) => *state = State::Abandoned(self.buffer.clone()),
            State::Failed | State::Abandoned(_) => {}
        }
    }
}

/// Unmap a staging buffer and keep it for the next read.
fn give_back(pool: &Weak<Shared>, buffer: wgpu::Buffer) {
    buffer.unmap();
    if let Some(shared) = pool.upgrade() {
        let mut staging = lock(&shared.staging);
        let held: u64 = staging.iter().map(wgpu::Buffer::size).sum();
        if held + buffer.size() <= KEPT {
            staging.push(buffer);
        }
    }
}
