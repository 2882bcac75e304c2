//! Whole training steps of the mechanisms: time against `standard`, time by kernel, counts and memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use braid_engine::bench::{Anchors, Cost, Size, call_cost};
use braid_engine::data::{Dataset, TextDataset, TextOptions, TokenizerKind};
use braid_engine::error::bytes_for_people;
use braid_engine::executor::{Counts, Data};
use braid_engine::models::config::ResidualConfig;
use braid_engine::models::{decoder, plans};
use braid_engine::optim::{Schedule, ScheduleKind, StepScalars};
use braid_engine::plan::{External, Plan};
use braid_engine::runtime::Runtime;
use braid_engine::trainer::{TrainConfig, Trainer};
use serde::Serialize;
use serde_json::{Value, json};

use super::anchors::{self, bound};
use super::measure::{Median, Subject, rounds};
use super::{Bench, Failure, UPDATE};
use crate::cli::Outcome;

/// Profiles of a step, of which each kernel's median counts.
const PROFILES: usize = 5;
/// Kernels that are listed, the most expensive ones.
const LISTED: usize = 16;

/// A mechanism and what to call it.
pub(super) struct Mechanism {
    pub(super) name: &'static str,
    pub(super) residual: ResidualConfig,
}

/// The mechanisms of models with so many layers: block forms have about four blocks, none of a single layer.
pub(super) fn mechanisms(layers: u32) -> Result<Vec<Mechanism>, Failure> {
    let layers_per_block = layers.div_ceil(4).max(2);
    let sublayers_per_block = 2 * layers_per_block;
    let all = [
        ("standard", json!({"kind": "standard"})),
        (
            "attn_res block",
            json!({"kind": "attn_res", "sublayers_per_block": sublayers_per_block}),
        ),
        ("attn_res full", json!({"kind": "attn_res"})),
        (
            "delta block",
            json!({"kind": "delta", "granularity": "block", "sublayers_per_block": sublayers_per_block}),
        ),
        ("delta full", json!({"kind": "delta"})),
        (
            "dar block",
            json!({"kind": "dar", "layers_per_block": layers_per_block}),
        ),
        ("dar full", json!({"kind": "dar"})),
    ];
    let read = |(name, value): (&'static str, Value)| {
        let residual = serde_json::from_value(value);
        let residual =
            residual.map_err(|error| Failure::new(super::super::FAILED, error.to_string()))?;
        Ok(Mechanism { name, residual })
    };
    all.into_iter().map(read).collect()
}

/// A text of pseudo-random words over as many characters as the vocabulary has.
fn text(size: &Size) -> Result<Dataset, Failure> {
    let vocab = size.vocab as usize;
    let mut letters: Vec<char> = ('!'..='~').chain('¡'..).take(vocab).collect();
    let mut bytes: String = letters.iter().collect();
    // A linear congruential generator; what the text says does not matter.
    let mut state = 1_u64;
    for _ in 0..40 * size.context as usize * size.sequences as usize {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let next = (state >> 33) as usize;
        if next.is_multiple_of(7) {
            letters.rotate_left(1);
        }
        bytes.push(letters[next % vocab.min(12)]);
    }
    let options = TextOptions {
        name: "the text of the bench",
        tokenizer: TokenizerKind::Char,
        vocabulary: None,
        val_fraction: 0.1,
        context: size.context as usize,
    };
    Ok(Dataset::Text(TextDataset::new(bytes.as_bytes(), &options)?))
}

/// A training of a model of this size.
pub(super) fn trainer(
    bench: &Bench<'_>,
    size: &Size,
    residual: ResidualConfig,
) -> Result<RefCell<Trainer>, Failure> {
    let config = TrainConfig {
        batch: size.batch(),
        accumulate: 1,
        checkpoint: false,
        schedule: Schedule {
            kind: ScheduleKind::Constant,
            lr: 1e-3,
            min_lr: 1e-3,
            warmup: 100,
            steps: u64::MAX,
        },
        update: UPDATE,
        seed: 1,
        eval_batches: 1,
    };
    let executor = bench.device.executor();
    let trainer = Trainer::new(executor, size.model(residual), config, text(size)?)?;
    Ok(RefCell::new(trainer))
}

/// So many steps, and wait until they are done.
pub(super) fn advance(trainer: &RefCell<Trainer>, steps: usize) -> Outcome {
    let mut trainer = trainer.borrow_mut();
    for _ in 0..steps {
        if trainer.ring_is_full() {
            pollster::block_on(trainer.collect())?;
        }
        trainer.step()?;
    }
    pollster::block_on(trainer.collect())?;
    Ok(())
}

/// The step of a mechanism.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    mechanism: &'static str,
    milliseconds: Median,
    tokens_per_s: Median,
    /// Time over that of `standard` in the same round.
    over_standard: Option<Median>,
    /// Microseconds that the host needs for a kernel call: to write the batch, encode and submit. `None` where the host
    /// computes.
    host_us_per_dispatch: Option<Median>,
    submits: u64,
    passes: u64,
    dispatches: u64,
    buffers_created: u64,
    bind_groups_created: u64,
    pipelines_created: u64,
    /// Bytes of activations, their gradients and scratch.
    planned_bytes: u64,
    /// The same if each had a buffer of its own.
    unshared_bytes: u64,
    /// The same with activations that are computed again.
    checkpointed_bytes: u64,
    /// Where the time goes, kernel by kernel, measured apart; `None` if the device has no clock.
    kernels: Option<Vec<Kernel>>,
}

/// All calls of a kernel in a step.
#[derive(Clone, Debug, Serialize)]
struct Kernel {
    kernel: String,
    calls: usize,
    microseconds: f64,
    /// Share of all kernels' time.
    share: f64,
    /// Share of the bound of its bytes and operations.
    of_bound: f64,
}

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let mut all = mechanisms(bench.size.layers)?;
    all.retain(|mechanism| mechanism.name == "standard" || bench.wants(mechanism.name));
    let mut trainers = Vec::new();
    for mechanism in &all {
        trainers.push(trainer(bench, &bench.size, mechanism.residual.clone())?);
    }
    let mut subjects = Vec::new();
    for trainer in &trainers {
        subjects.push(Subject::new(move |times| advance(trainer, times))?);
    }
    let seconds = rounds(&mut subjects, bench.rounds)?;
    drop(subjects);
    let mut rows = Vec::new();
    for ((mechanism, trainer), own) in all.iter().zip(&trainers).zip(&seconds) {
        let counts = counts(trainer)?;
        let host = if bench.device.gpu().is_some() {
            Some(host(trainer, bench.rounds, counts.dispatches)?)
        } else {
            None
        };
        let tokens = f64::from(bench.size.batch().rows());
        let memory = trainer.borrow().memory().training.clone();
        rows.push(Row {
            mechanism: mechanism.name,
            milliseconds: Median::of(own.iter().map(|s| s * 1e3).collect()),
            tokens_per_s: Median::of(own.iter().map(|s| tokens / s).collect()),
            over_standard: (mechanism.name != "standard")
                .then(|| Median::of_ratios(own, &seconds[0])),
            host_us_per_dispatch: host,
            submits: counts.submits,
            passes: counts.passes,
            dispatches: counts.dispatches,
            buffers_created: counts.buffers,
            bind_groups_created: counts.bind_groups,
            pipelines_created: counts.pipelines,
            planned_bytes: memory.planned,
            unshared_bytes: memory.unshared,
            checkpointed_bytes: 0,
            kernels: None,
        });
    }
    drop(trainers);
    for (mechanism, row) in all.iter().zip(&mut rows) {
        (row.checkpointed_bytes, row.kernels) = profile(bench, mechanism)?;
    }
    Ok(rows)
}

/// What one steady step does.
fn counts(trainer: &RefCell<Trainer>) -> Result<Counts, Failure> {
    let mut trainer = trainer.borrow_mut();
    let before = trainer.counts();
    trainer.step()?;
    let after = trainer.counts();
    pollster::block_on(trainer.collect())?;
    Ok(Counts {
        submits: after.submits - before.submits,
        passes: after.passes - before.passes,
        dispatches: after.dispatches - before.dispatches,
        buffers: after.buffers - before.buffers,
        bind_groups: after.bind_groups - before.bind_groups,
        pipelines: after.pipelines - before.pipelines,
    })
}

/// Microseconds a kernel call from the start of a step until it is submitted, the device being idle before.
fn host(trainer: &RefCell<Trainer>, rounds: usize, dispatches: u64) -> Result<Median, Failure> {
    let mut trainer = trainer.borrow_mut();
    let mut all = Vec::new();
    for _ in 0..rounds {
        let begin = Instant::now();
        trainer.step()?;
        all.push(begin.elapsed().as_secs_f64() * 1e6 / dispatches as f64);
        pollster::block_on(trainer.collect())?;
    }
    Ok(Median::of(all))
}

/// Bytes of the plan with recomputed activations, and the time of each kernel.
fn profile(
    bench: &Bench<'_>,
    mechanism: &Mechanism,
) -> Result<(u64, Option<Vec<Kernel>>), Failure> {
    let model = bench.size.model(mechanism.residual.clone());
    let parameters = Arc::new(decoder::parameters(&model)?);
    let executor = bench.device.executor();
    let limits = executor.limits();
    let record = |checkpoint| {
        let how = plans::Training {
            batch: bench.size.batch(),
            accumulate: 1,
            checkpoint,
            watch: false,
        };
        plans::training(&model, &parameters, &how, &limits)
    };
    let again = record(true)?.plan.memory.planned;
    let (train, update) = (
        record(false)?,
        plans::update(&model, &parameters, &UPDATE, &limits)?,
    );
    let mut runtime = Runtime::new(executor, parameters.clone())?;
    let values = parameters.initial_values(1);
    runtime.write_external(External::Values, Data::F32(&values))?;
    let loaded = [runtime.load_model(&train)?, runtime.load(&update)?];
    let tokens: Vec<u32> = (0..bench.size.batch().rows())
        .map(|at| at * 7 % bench.size.vocab)
        .collect();
    runtime.write_batch(&loaded[0], &tokens, &tokens)?;
    runtime.write_scalars(&StepScalars {
        lr: 1e-3,
        step: 1,
        beta1: UPDATE.beta1,
        beta2: UPDATE.beta2,
    })?;
    runtime.submit(true, &[&loaded[0], &loaded[1]])?;

    let shared = RefCell::new(bench.device.executor());
    let measures = Anchors::load(shared.borrow_mut().as_mut())?;
    let mut both = anchors::subjects(bench.device, &shared, measures)?;
    let anchor_seconds = rounds(&mut both, PROFILES)?;
    let begin = Instant::now();
    let clock = || begin.elapsed().as_secs_f64();
    let plans: [&Plan; 2] = [&train.plan, &update];
    let mut all = Vec::new();
    for _ in 0..PROFILES {
        let mut seconds = Vec::new();
        for loaded in &loaded {
            match pollster::block_on(runtime.profile(loaded, &clock))? {
                Some(part) => seconds.extend(part),
                None => return Ok((again, None)),
            }
        }
        all.push(seconds);
    }
    let median = |number: usize| Median::of(all.iter().map(|one| one[number]).collect()).median;
    let anchor = |number: usize| Median::of(anchor_seconds[number].clone()).median;
    let mut kernels: BTreeMap<String, (usize, f64, f64)> = BTreeMap::new();
    let steps = plans.iter().flat_map(|plan| &plan.steps);
    for (number, step) in steps.enumerate() {
        let cost: Cost = call_cost(step);
        let entry = kernels.entry(step.kernel.id()).or_default();
        entry.0 += 1;
        entry.1 += median(number);
        entry.2 += bound(bench.device, cost, anchor(0), anchor(1));
    }
    let total: f64 = kernels.values().map(|(_, seconds, _)| seconds).sum();
    let mut kernels: Vec<Kernel> = kernels
        .into_iter()
        .map(|(kernel, (calls, seconds, bound))| Kernel {
            kernel,
            calls,
            microseconds: seconds * 1e6,
            share: seconds / total,
            of_bound: bound / seconds,
        })
        .collect();
    kernels.sort_by(|a, b| b.microseconds.total_cmp(&a.microseconds));
    Ok((again, Some(kernels)))
}

pub(super) fn lines(rows: &[Row]) -> Vec<String> {
    let mut lines = vec![format!(
        "\n{:<15} {:>10} {:>9}  {:<20} {:>11} {:>10}  {:<29} created",
        "step",
        "ms",
        "tokens/s",
        "over standard",
        "dispatches",
        "host µs",
        "planned, unshared, recomputed"
    )];
    for row in rows {
        let memory = [
            row.planned_bytes,
            row.unshared_bytes,
            row.checkpointed_bytes,
        ];
        lines.push(format!(
            "{:<15} {:>10.2} {:>9.0}  {:<20} {:>11} {:>10}  {:<29} {} buffers, {} bind groups, {} pipelines; {} submit, {} pass",
            row.mechanism,
            row.milliseconds.median,
            row.tokens_per_s.median,
            row.over_standard.map_or(String::new(), |ratio| ratio.text(3)),
            row.dispatches,
            row.host_us_per_dispatch
                .map_or("-".into(), |host| format!("{:.2}", host.median)),
            memory.map(bytes_for_people).join(", "),
            row.buffers_created,
            row.bind_groups_created,
            row.pipelines_created,
            row.submits,
            row.passes,
        ));
    }
    for row in rows {
        let Some(kernels) = &row.kernels else {
            lines.push(format!(
                "\n{}: this device cannot measure single kernels",
                row.mechanism
            ));
            continue;
        };
        lines.push(format!(
            "\n{:<15} {:<40} {:>5} {:>10} {:>7} {:>10}",
            row.mechanism, "kernel", "calls", "µs", "share", "% of bound"
        ));
        for kernel in kernels.iter().take(LISTED) {
            lines.push(format!(
                "{:<15} {:<40} {:>5} {:>10.1} {:>6.1}% {:>10.1}",
                "",
                kernel.kernel,
                kernel.calls,
                kernel.microseconds,
                kernel.share * 100.0,
                kernel.of_bound * 100.0
            ));
        }
    }
    lines
}
