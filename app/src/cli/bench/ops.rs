//! Every op of every mechanism, forward and backward, against what its bytes and operations need at least.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use braid_engine::bench::{Anchors, Cost, OpCase, Size, cases};
use braid_engine::executor::{BufferId, Data, Range, Work};
use braid_engine::kernel::Element;
use braid_engine::models::config::{ModelConfig, ResidualConfig};
use braid_engine::models::{decoder, plans};
use braid_engine::optim::{STATUS_LEN, STEP_SCALARS_LEN, StepScalars};
use braid_engine::params::Parameters;
use braid_engine::plan::{External, Pass};
use braid_engine::runtime::ARENAS;
use serde::Serialize;

use super::anchors::{self, Shared, bound, run};
use super::measure::{Median, Subject, rounds};
use super::{Bench, Failure, UPDATE};

/// Layers of the models whose ops are measured: more would only repeat them.
const LAYERS: u32 = 4;
/// Sizes of one op that are measured, those that cost most.
const SIZES: usize = 4;
/// Measured between two looks at the anchors.
const GROUP: usize = 4;

/// An op at a size.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    op: &'static str,
    pass: &'static str,
    size: String,
    /// The first mechanism that has it.
    mechanism: &'static str,
    calls: usize,
    bytes: u64,
    operations: u64,
    microseconds: Median,
    /// Share of the bound: 1 is as fast as the anchors.
    share: Median,
    /// Whether bytes or operations are the bound.
    bound: &'static str,
}

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    // By op and pass, how many sizes have been measured; by op, pass and size, that this one has.
    let mut done = BTreeMap::new();
    for kind in ResidualConfig::KINDS {
        let Some(residual) = ResidualConfig::of_kind(kind) else {
            continue;
        };
        let size = Size {
            layers: bench.size.layers.min(LAYERS),
            ..bench.size
        };
        let model = size.model(residual);
        if model.validate().is_err() {
            continue; // such as a mechanism that needs another number of layers
        }
        measure_model(bench, kind, &model, &size, &mut done, &mut rows)?;
    }
    rows.sort_by(|a, b| (a.op, a.pass != "forward").cmp(&(b.op, b.pass != "forward")));
    Ok(rows)
}

/// The ops of one model that no earlier one had.
fn measure_model(
    bench: &Bench<'_>,
    mechanism: &'static str,
    model: &ModelConfig,
    size: &Size,
    done: &mut BTreeMap<(&'static str, Pass), Vec<OpCase>>,
    rows: &mut Vec<Row>,
) -> Result<(), Failure> {
    let parameters = Arc::new(decoder::parameters(model)?);
    let executor = RefCell::new(bench.device.executor());
    let how = plans::Training {
        batch: size.batch(),
        accumulate: 1,
        checkpoint: false,
        watch: false,
    };
    let limits = executor.borrow().limits();
    let recorded = plans::training_apart(model, &parameters, &how, &limits)?;
    let update = plans::update(model, &parameters, &UPDATE, &limits)?;
    let mut new = Vec::new();
    for (number, plan) in [&recorded.plan, &update].into_iter().enumerate() {
        for case in cases(plan) {
            let known = done.entry((case.op, case.pass)).or_default();
            let same = |other: &OpCase| other.cost == case.cost && other.calls() == case.calls();
            if bench.wants(case.op) && known.len() < SIZES && !known.iter().any(same) {
                known.push(case.clone());
                new.push((number, case));
            }
        }
    }
    if new.is_empty() {
        return Ok(());
    }

    let externals = externals(&executor, &parameters)?;
    let (programs, end) = {
        let mut executor = executor.borrow_mut();
        let programs = [
            executor.load(&recorded.plan, &externals)?,
            executor.load(&update, &externals)?,
        ];
        let tokens: Vec<u32> = (0..size.batch().rows())
            .map(|at| at * 7 % size.vocab)
            .collect();
        for name in [plans::IDS, plans::LABELS] {
            let range = executor.range(programs[0], recorded.plan.places[name]);
            executor.write(range.buffer, range.offset, Data::U32(&tokens))?;
        }
        let end = executor.range(programs[0], recorded.plan.places[plans::IDS]);
        (programs, Range { len: 1, ..end })
    };
    // Everything once, so that every op finds what it reads.
    run(&executor, &programs.map(Work::Run), end)?;
    let anchors = Anchors::load(executor.borrow_mut().as_mut())?;

    for group in new.chunks(GROUP) {
        let both = anchors::subjects(bench.device, &executor, anchors)?;
        let mut subjects: Vec<Subject<'_>> = both.into_iter().collect();
        for (number, case) in group {
            let (program, executor) = (programs[*number], &executor);
            let (first, last) = (case.first, case.last);
            subjects.push(Subject::new(move |times| {
                let work = Work::Repeat {
                    program,
                    first,
                    last,
                    times,
                };
                run(executor, &[work], end)
            })?);
        }
        let seconds = rounds(&mut subjects, bench.rounds)?;
        let (copy, compute) = (&seconds[0], &seconds[1]);
        for ((_, case), own) in group.iter().zip(&seconds[2..]) {
            let bounds = |cost: Cost| -> Vec<f64> {
                let rounds = copy.iter().zip(compute);
                rounds
                    .map(|(&copy, &compute)| bound(bench.device, cost, copy, compute))
                    .collect()
            };
            let bytes_alone = Cost {
                operations: 0,
                ..case.cost
            };
            let all = bounds(case.cost);
            rows.push(Row {
                op: case.op,
                pass: match case.pass {
                    Pass::Forward => "forward",
                    Pass::Backward => "backward",
                },
                size: case.size.clone(),
                mechanism,
                calls: case.calls(),
                bytes: case.cost.bytes,
                operations: case.cost.operations,
                microseconds: Median::of(own.iter().map(|s| s * 1e6).collect()),
                share: Median::of_ratios(&all, own),
                bound: if bounds(bytes_alone) == all {
                    "bytes"
                } else {
                    "operations"
                },
            });
        }
    }
    Ok(())
}

/// All buffers that plans share, with initial values, and scalars by which an update changes nothing.
fn externals(
    executor: &Shared,
    parameters: &Parameters,
) -> Result<BTreeMap<External, BufferId>, Failure> {
    let mut executor = executor.borrow_mut();
    let arenas = ARENAS.map(|arena| (arena, parameters.arena_len()));
    let others = [
        (External::StepScalars, STEP_SCALARS_LEN),
        (External::Status, STATUS_LEN),
    ];
    let mut all = BTreeMap::new();
    for (external, len) in arenas.into_iter().chain(others) {
        let buffer = executor.allocate(&format!("{external:?}"), len, Element::F32)?;
        all.insert(external, buffer);
    }
    let values = parameters.initial_values(1);
    executor.write(all[&External::Values], 0, Data::F32(&values))?;
    let scalars = StepScalars {
        lr: 0.0,
        step: 1,
        beta1: UPDATE.beta1,
        beta2: UPDATE.beta2,
    };
    executor.write(
        all[&External::StepScalars],
        0,
        Data::F64(&scalars.to_values()),
    )?;
    Ok(all)
}

pub(super) fn lines(rows: &[Row]) -> Vec<String> {
    let mut lines = vec![format!(
        "\n{:<20} {:<8} {:>5} {:>10}  {:<24} {:<10} size",
        "op", "pass", "calls", "µs", "% of bound", "bound"
    )];
    for row in rows {
        let percent = |share: f64| share * 100.0;
        let share = Median {
            median: percent(row.share.median),
            low: percent(row.share.low),
            high: percent(row.share.high),
        };
        lines.push(format!(
            "{:<20} {:<8} {:>5} {:>10.1}  {:<24} {:<10} {}",
            row.op,
            row.pass,
            row.calls,
            row.microseconds.median,
            share.text(1),
            row.bound,
            row.size
        ));
    }
    lines
}
