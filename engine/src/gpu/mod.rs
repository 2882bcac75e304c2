//! The GPU executor. Beside `device`, the only part of the engine that names wgpu.
//!
//! A [`Gpu`] is an open device with the kernels that were compiled for it; any number of [`GpuExecutor`]s share one.
//! Nothing here panics on what a driver does: errors come back as [`Error::Gpu`], a vanished device as
//! [`Error::DeviceLost`]. In browsers errors arrive late, so the *next* call reports them.

mod execute;
mod kernel;
mod profile;
mod readback;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
#[cfg(not(target_arch = "wasm32"))]
use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

pub use execute::GpuExecutor;
use kernel::Pipelines;

use crate::error::{Error, Result};

/// How long a device may take to answer before it counts as hung. Software drivers have been seen to wait for ever.
#[cfg(not(target_arch = "wasm32"))]
const PATIENCE: Duration = Duration::from_secs(60);

/// An open device and its compiled kernels.
#[derive(Debug)]
pub struct Gpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
    limits: wgpu::Limits,
    /// Invocations of a workgroup (`override WG`).
    workgroup: u32,
    pipelines: Mutex<Pipelines>,
    faults: Arc<Mutex<Faults>>,
}

/// What went wrong outside of a call.
#[derive(Debug, Default)]
struct Faults {
    /// Why the device is gone.
    lost: Option<String>,
    /// An error that no scope caught.
    error: Option<String>,
}

impl Gpu {
    /// Adopt a device. `workgroup` is the number of invocations of a workgroup, where kernels leave it open.
    pub(crate) fn new(device: wgpu::Device, queue: wgpu::Queue, workgroup: u32) -> Self {
        let faults = Arc::new(Mutex::new(Faults::default()));
        let lost = faults.clone();
        device.set_device_lost_callback(move |reason, message| {
            let message = if message.is_empty() {
                format!("{reason:?}")
            } else {
                message
            };
            lock(&lost).lost.get_or_insert(message);
        });
        let uncaught = faults.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            lock(&uncaught).error.get_or_insert(error.to_string());
        }));
        Self {
            limits: device.limits(),
            device,
            queue,
            workgroup,
            pipelines: Mutex::default(),
            faults,
        }
    }

    /// Drop the device, as a driver reset would: for tests of what happens then.
    pub fn destroy(&self) {
        self.device.destroy();
    }

    /// Report what went wrong since the last call.
    fn check(&self) -> Result<()> {
        let mut faults = lock(&self.faults);
        if let Some(reason) = &faults.lost {
            return Err(Error::DeviceLost(reason.clone()));
        }
        match faults.error.take() {
            Some(message) => Err(Error::Gpu {
                doing: "running an earlier command".into(),
                message,
            }),
            None => Ok(()),
        }
    }

    /// Do something, and report what the driver says about it. `doing` completes "while ..".
    #[cfg(not(target_arch = "wasm32"))]
    fn guarded<R>(&self, doing: impl Fn() -> String, work: impl FnOnce() -> R) -> Result<R> {
        self.check()?;
        // Scopes belong to a thread, so that executors which share the device do not see each other's errors.
        let scope = |filter| self.device.push_error_scope(filter);
        let memory = scope(wgpu::ErrorFilter::OutOfMemory);
        let internal = scope(wgpu::ErrorFilter::Internal);
        let validation = scope(wgpu::ErrorFilter::Validation);
        let result = work();
        let mut first = None;
        for scope in [validation, internal, memory] {
            // The result of a native scope is there at once.
            let popped = pin!(scope.pop()).poll(&mut Context::from_waker(Waker::noop()));
            if let Poll::Ready(Some(error)) = popped {
                first.get_or_insert(error);
            }
        }
        self.check()?;
        let Some(error) = first else {
            return Ok(result);
        };
        // Whatever is asked of a lost device fails its validation; the news of the loss itself comes with a poll.
        self.progress(false)?;
        Err(fault(doing(), &error))
    }

    /// Do something that allocates, and wait for what the driver says about it: native ones say it at once.
    #[cfg(not(target_arch = "wasm32"))]
    #[expect(clippy::unused_async, reason = "browsers wait here")]
    pub(crate) async fn watched<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        work()
    }

    /// Do something that allocates, and wait for what the browser says about it.
    #[cfg(target_arch = "wasm32")]
    pub(crate) async fn watched<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let memory = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let validation = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let result = work();
        let (validation, memory) = (validation.pop(), memory.pop());
        // Memory first: whatever uses a buffer that could not be allocated is invalid, too.
        let first = match memory.await {
            Some(error) => Some(error),
            None => validation.await,
        };
        let result = result?;
        self.check()?;
        match first {
            Some(error) => Err(fault("allocating the buffers of this run".into(), &error)),
            None => Ok(result),
        }
    }

    /// Do something. Browsers report errors later than any call, so there is nothing to wait for: the handler of uncaptured
    /// errors gets them, and the next call returns them.
    #[cfg(target_arch = "wasm32")]
    fn guarded<R>(&self, _: impl Fn() -> String, work: impl FnOnce() -> R) -> Result<R> {
        self.check()?;
        Ok(work())
    }

    /// Let the device make progress; with `wait`, until everything submitted is done.
    #[cfg(not(target_arch = "wasm32"))]
    fn progress(&self, wait: bool) -> Result<()> {
        let how = if wait {
            wgpu::PollType::Wait {
                submission_index: None,
                timeout: Some(PATIENCE),
            }
        } else {
            wgpu::PollType::Poll
        };
        // wgpu 30 panics in `poll` when the driver reports a lost device, and has no other way to say so.
        let polled =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.device.poll(how)));
        match polled {
            Ok(Ok(_)) => self.check(),
            Ok(Err(error)) => {
                self.check()?;
                Err(Error::Gpu {
                    doing: format!("waiting {} s for it", PATIENCE.as_secs()),
                    message: error.to_string(),
                })
            }
            Err(panic) => {
                let message = panic.downcast_ref::<String>().cloned();
                lock(&self.faults)
                    .lost
                    .get_or_insert(message.unwrap_or_else(|| "the driver gave up".into()));
                self.check()
            }
        }
    }
}

/// What a driver reported. That memory is used up is no failure of the device: there is something to do about it.
fn fault(doing: String, error: &wgpu::Error) -> Error {
    match error {
        wgpu::Error::OutOfMemory { .. } => Error::Memory {
            tensor: doing,
            need: "more memory".into(),
            limit: "the GPU has no more of it".into(),
            advice: "lower train.batch, model.context, model.width or model.layers, close other programs and pages \
                     that use the GPU, or use the device cpu"
                .into(),
        },
        _ => Error::Gpu {
            doing,
            message: error.to_string(),
        },
    }
}

/// Lock, also after a panic elsewhere: what is guarded here is never half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
