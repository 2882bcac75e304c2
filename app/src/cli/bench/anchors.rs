//! What the device can do at best: copy, and multiply and add.

use std::cell::RefCell;

use braid_engine::bench::{Anchors, Cost};
use braid_engine::cpu::fast::gemm;
use braid_engine::device::Device;
use braid_engine::executor::{Executor, Range, Work};
use serde::Serialize;

use super::Bench;
use super::measure::{Median, Subject, rounds};
use crate::cli::{Failure, Outcome};

/// Size of the product by which a CPU is measured.
const PRODUCT: usize = 512;

/// An executor that several subjects use in turn.
pub(super) type Shared = RefCell<Box<dyn Executor>>;

/// Submit, and wait until it is done.
pub(super) fn run(executor: &Shared, work: &[Work], end: Range) -> Outcome {
    let mut executor = executor.borrow_mut();
    executor.submit(work)?;
    let read = executor.read(&[end])?;
    pollster::block_on(read)?;
    Ok(())
}

/// The copy and the computation as subjects on an executor of this device: `gemm` on the CPU, a kernel elsewhere.
pub(super) fn subjects<'a>(
    device: &Device,
    executor: &'a Shared,
    anchors: Anchors,
) -> Result<[Subject<'a>; 2], Failure> {
    let copy = Subject::new(move |times| run(executor, &[anchors.copy(times)], anchors.end()))?;
    let compute = if device.gpu().is_some() {
        let work = move |times| run(executor, &[anchors.multiply_add(times)], anchors.end());
        Subject::new(work)?
    } else {
        let (a, b) = (vec![1.0; PRODUCT * PRODUCT], vec![1.0; PRODUCT * PRODUCT]);
        let mut c = vec![0.0; PRODUCT * PRODUCT];
        Subject::new(move |times| {
            (0..times).for_each(|_| gemm(PRODUCT, &a, &b, &mut c));
            Ok(())
        })?
    };
    Ok([copy, compute])
}

/// Operations of the computing anchor.
fn operations(device: &Device) -> f64 {
    if device.gpu().is_some() {
        Anchors::OPERATIONS as f64
    } else {
        2.0 * (PRODUCT * PRODUCT * PRODUCT) as f64
    }
}

/// The least seconds that a cost takes in a round in which the anchors took these seconds.
pub(super) fn bound(device: &Device, cost: Cost, copy: f64, compute: f64) -> f64 {
    let bytes = cost.bytes as f64 * copy / Anchors::COPY_BYTES as f64;
    let operations = cost.operations as f64 * compute / operations(device);
    bytes.max(operations)
}

/// What the device can do at best.
#[derive(Debug, Serialize)]
pub(super) struct Rates {
    /// Bytes read and written in a second by a copy, in units of 1e9.
    copy_gb_per_s: Median,
    /// Float operations in a second, in units of 1e9.
    compute_gflop_per_s: Median,
}

impl Rates {
    /// From seconds of both anchors.
    pub(super) fn of(device: &Device, copy: &[f64], compute: &[f64]) -> Self {
        let rate = |amount: f64, seconds: &[f64]| {
            Median::of(seconds.iter().map(|s| amount / s / 1e9).collect())
        };
        Self {
            copy_gb_per_s: rate(Anchors::COPY_BYTES as f64, copy),
            compute_gflop_per_s: rate(operations(device), compute),
        }
    }

    pub(super) fn lines(&self) -> Vec<String> {
        vec![
            format!(
                "\ncopy     {} GB/s, read and written",
                self.copy_gb_per_s.text(1)
            ),
            format!("compute  {} GFLOP/s", self.compute_gflop_per_s.text(1)),
        ]
    }
}

pub(super) fn measure(bench: &Bench<'_>) -> Result<Rates, Failure> {
    let executor = RefCell::new(bench.device.executor());
    let anchors = Anchors::load(executor.borrow_mut().as_mut())?;
    let mut both = subjects(bench.device, &executor, anchors)?;
    let seconds = rounds(&mut both, bench.rounds)?;
    Ok(Rates::of(bench.device, &seconds[0], &seconds[1]))
}
