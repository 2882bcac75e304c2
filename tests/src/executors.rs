//! The executors that tests run on.

use braid_engine::cpu::CpuExecutor;
use braid_engine::executor::Executor;

/// The plain twins in `f64`: what everything else is held against.
#[must_use]
pub fn oracle() -> Box<dyn Executor> {
    Box::new(CpuExecutor::<f64>::new(None))
}

/// Every other executor, with a name for messages.
#[must_use]
pub fn executors() -> Vec<(&'static str, Box<dyn Executor>)> {
    vec![
        (
            "plain f32",
            Box::new(CpuExecutor::<f32>::new(None).plain_only()),
        ),
        ("fast f32", Box::new(CpuExecutor::<f32>::new(None))),
    ]
}
