//! The executors that tests run on.

use std::env;
use std::io::Write;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use braid_engine::cpu::CpuExecutor;
use braid_engine::device::{Device, DeviceChoice, DeviceOptions};
use braid_engine::executor::Executor;
use braid_engine::gpu::GpuExecutor;

/// One device for all tests of a binary: kernels are compiled once.
static GPU: LazyLock<Device> = LazyLock::new(|| {
    let choice = match env::var("WGPU_ADAPTER_NAME") {
        Ok(name) if !name.is_empty() => DeviceChoice::Named(name),
        _ => DeviceChoice::Gpu,
    };
    let device = pollster::block_on(Device::open(&choice, &DeviceOptions::default()));
    device.unwrap_or_else(|error| {
        panic!("{error}\n(GPU_TESTS=skip leaves out what needs a GPU, and counts it)")
    })
});

/// How often a GPU test was left out.
static SKIPPED: AtomicUsize = AtomicUsize::new(0);

/// The plain twins in `f64`: what everything else is held against.
#[must_use]
pub fn oracle() -> Box<dyn Executor> {
    Box::new(CpuExecutor::<f64>::new(None).poisoned(true))
}

/// Every other executor, with a name for messages. What they have not written is NaN.
///
/// # Panics
/// If there is no GPU adapter and `GPU_TESTS=skip` is not set.
#[must_use]
pub fn executors() -> Vec<(&'static str, Box<dyn Executor>)> {
    let plain = CpuExecutor::<f32>::new(None).plain_only().poisoned(true);
    let fast = CpuExecutor::<f32>::new(None).poisoned(true);
    let mut all: Vec<(&'static str, Box<dyn Executor>)> =
        vec![("plain f32", Box::new(plain)), ("fast f32", Box::new(fast))];
    if let Some(gpu) = gpu_executor() {
        all.push(("gpu", Box::new(gpu)));
    }
    all
}

/// The device of this test binary; `None` if GPU tests are to be skipped, which is counted and printed.
///
/// # Panics
/// If there is no adapter and `GPU_TESTS=skip` is not set.
#[must_use]
pub fn gpu() -> Option<&'static Device> {
    if env::var("GPU_TESTS").is_ok_and(|value| value == "skip") {
        let count = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
        // Not `eprintln!`, which the test harness hides.
        let line = format!("GPU_TESTS=skip: left out on the GPU, {count} so far\n");
        std::io::stderr().write_all(line.as_bytes()).ok();
        return None;
    }
    Some(&GPU)
}

/// A poisoned executor on the device of this test binary.
///
/// # Panics
/// As [`gpu`].
#[must_use]
pub fn gpu_executor() -> Option<GpuExecutor> {
    let gpu = gpu()?.gpu()?.clone();
    Some(GpuExecutor::new(gpu, None).poisoned(true))
}
