//! The same configuration and seed give the same bits: run twice, resumed half-way, on any number of threads.

use braid_engine::cpu::CpuExecutor;
use braid_engine::data::{Dataset, Task, TaskKind};
use braid_engine::executor::Executor;
use braid_engine::models::config::ModelConfig;
use braid_engine::nn::Batch;
use braid_engine::optim::{Schedule, ScheduleKind, UpdateConfig};
use braid_engine::trainer::{StepResult, TrainConfig, Trainer};
use braid_tests::{executors, gpu_executor};

pub(crate) fn config() -> TrainConfig {
    TrainConfig {
        batch: Batch {
            sequences: 3,
            context: 40,
        },
        accumulate: 1,
        checkpoint: false,
        schedule: Schedule {
            kind: ScheduleKind::Cosine,
            lr: 3e-3,
            min_lr: 1e-4,
            warmup: 3,
            steps: 12,
        },
        update: UpdateConfig {
            beta1: 0.9,
            beta2: 0.95,
            eps: 1e-8,
            weight_decay: 0.1,
            clip: 1.0,
            routing_lr_mult: 2.0,
            muon: None,
        },
        seed: 7,
        eval_batches: 2,
    }
}

fn trainer_with(executor: Box<dyn Executor>, config: TrainConfig) -> Trainer {
    let residual = r#"{"kind": "dar", "layers_per_block": 2}"#;
    trainer_of(residual, executor, config)
}

/// A trainer of a small model with this residual mechanism.
pub(crate) fn trainer_of(
    residual: &str,
    executor: Box<dyn Executor>,
    config: TrainConfig,
) -> Trainer {
    let data = Dataset::Task(Task::new(TaskKind::Copy, 40).expect("fits"));
    let text = format!(
        r#"{{"vocab_size": {}, "hidden_size": 20, "intermediate_size": 24, "num_hidden_layers": 3,
            "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 10,
            "residual": {residual}}}"#,
        data.vocab_size()
    );
    let model = ModelConfig::from_json(&text).expect("valid");
    Trainer::new(executor, model, config, data).expect("fits")
}

fn trainer(executor: Box<dyn Executor>) -> Trainer {
    trainer_with(executor, config())
}

/// Losses, norms, parameters and moments after `steps` more steps.
pub(crate) fn train(trainer: &mut Trainer, steps: usize) -> (Vec<StepResult>, [Vec<f32>; 3]) {
    for _ in 0..steps {
        trainer.step().expect("runs");
    }
    let results = pollster::block_on(trainer.collect()).expect("reads");
    (
        results,
        pollster::block_on(trainer.tensors()).expect("reads"),
    )
}

/// Equality of bits: `==` on floats takes 0 and -0 for equal.
pub(crate) fn bits(tensors: &[Vec<f32>; 3]) -> Vec<Vec<u32>> {
    tensors
        .iter()
        .map(|values| values.iter().map(|v| v.to_bits()).collect())
        .collect()
}

#[test]
fn two_runs_are_equal_and_learn() {
    for ((name, a), (_, b)) in executors().into_iter().zip(executors()) {
        let (first, tensors) = train(&mut trainer(a), 12);
        let (second, again) = train(&mut trainer(b), 12);
        assert_eq!(first, second, "{name}");
        assert_eq!(bits(&tensors), bits(&again), "{name}");
        assert!(first.iter().all(|result| result.ok), "{name}: {first:?}");
        assert!(first[11].loss < first[0].loss, "{name}: {first:?}");
    }
}

#[test]
fn a_resumed_run_is_the_run() {
    for (((name, a), (_, b)), (_, c)) in executors().into_iter().zip(executors()).zip(executors()) {
        let (whole, tensors) = train(&mut trainer(a), 12);
        let (half, [values, first, second]) = train(&mut trainer(b), 6);
        let mut resumed = trainer(c);
        resumed
            .restore(6, &values, Some((&first, &second)))
            .expect("fits");
        let (rest, again) = train(&mut resumed, 6);
        assert_eq!([half, rest].concat(), whole, "{name}");
        assert_eq!(bits(&tensors), bits(&again), "{name}");
    }
}

#[test]
fn looking_changes_nothing() {
    for ((name, a), (_, b)) in executors().into_iter().zip(executors()) {
        let (_, tensors) = train(&mut trainer(a), 6);
        let mut watched = trainer(b);
        for _ in 0..6 {
            watched.step().expect("runs");
            pollster::block_on(watched.evaluate()).expect("runs");
            let sites = pollster::block_on(watched.look()).expect("runs").sites;
            assert_eq!(sites.len(), 7, "{name}");
        }
        let again = pollster::block_on(watched.tensors()).expect("reads");
        assert_eq!(bits(&tensors), bits(&again), "{name}");
    }
}

/// After one update the first moment is the gradient times `1 - beta1`: hold the norm of each site against it.
#[test]
fn the_gradient_of_each_depth_is_that_of_its_parameters() {
    let mut config = config();
    config.update.clip = 0.0;
    for (name, executor) in executors() {
        let mut trainer = trainer_with(executor, config.clone());
        let before = pollster::block_on(trainer.look()).expect("runs").depth;
        assert!(
            before.iter().all(|depth| depth.gradient.is_none()),
            "{name}"
        );
        let (results, [values, first, second]) = train(&mut trainer, 1);
        let depth = pollster::block_on(trainer.look()).expect("runs").depth;
        let parameters = trainer.parameters().clone();
        let squares = |wanted: &dyn Fn(&str) -> bool| -> f64 {
            let own = parameters.trained().filter(|(_, spec)| wanted(&spec.name));
            let ranges = own.map(|(number, _)| &first[parameters.range(number)]);
            let gradient = |m: &f32| f64::from(*m) / (1.0 - config.update.beta1);
            ranges.flatten().map(|m| gradient(m).powi(2)).sum()
        };
        // A layer's parameters, without those of its depth attention.
        let of_site = |site: u32, parameter: &str| {
            let names = match site {
                6 => return parameter == "model.norm.weight",
                _ if site.is_multiple_of(2) => ["input_layernorm", "self_attn"],
                _ => ["post_attention_layernorm", "mlp"],
            };
            names
                .iter()
                .any(|part| parameter.starts_with(&format!("model.layers.{}.{part}.", site / 2)))
        };
        let mut all = 0.0;
        for (site, depth) in depth.iter().enumerate() {
            let expected = squares(&|name| of_site(site as u32, name)).sqrt();
            let found = depth.gradient.expect("is finite");
            assert!(expected > 0.0, "{name}: site {site}");
            assert!(
                (found / expected - 1.0).abs() < 1e-4,
                "{name}: site {site}: {found}, {expected}"
            );
            all += found.powi(2);
        }
        let rest = squares(&|name| (0..=6).all(|site| !of_site(site, name)));
        let whole = results[0].grad_norm;
        assert!(
            ((all + rest).sqrt() / whole - 1.0).abs() < 1e-4,
            "{name}: {all} + {rest}, {whole}"
        );
        // What is restored has not made a gradient.
        trainer
            .restore(1, &values, Some((&first, &second)))
            .expect("fits");
        let restored = pollster::block_on(trainer.look()).expect("runs").depth;
        assert!(
            restored.iter().all(|depth| depth.gradient.is_none()),
            "{name}"
        );
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("starts");
        pool.install(|| bits(&train(&mut trainer(Box::new(CpuExecutor::<f32>::new(None))), 6).1))
    };
    let one = run(1);
    for threads in [2, 3, 7] {
        assert_eq!(run(threads), one, "{threads} threads");
    }
}

/// Two passes of three sequences each are one of six, up to the order of sums.
#[test]
fn accumulated_gradients_are_those_of_the_whole_batch() {
    for (name, executor) in executors() {
        let mut accumulated = trainer_with(
            executor,
            TrainConfig {
                accumulate: 2,
                ..config()
            },
        );
        let (results, _) = train(&mut accumulated, 3);
        assert!(
            results.iter().all(|result| result.ok && result.loss > 0.5),
            "{name}: {results:?}"
        );
        // The loss of a step is the mean over its passes, not their sum.
        let mut single = trainer(Box::new(CpuExecutor::<f32>::new(None)));
        let (reference, _) = train(&mut single, 1);
        assert!(
            (results[0].loss - reference[0].loss).abs() < 0.2,
            "{name}: {results:?}, {reference:?}"
        );
    }
}

#[test]
fn a_rate_that_is_far_too_high_stops_the_run_and_is_explained() {
    for (name, executor) in executors() {
        let mut config = config();
        config.schedule = Schedule {
            kind: ScheduleKind::Constant,
            lr: 1e30,
            min_lr: 0.0,
            warmup: 0,
            steps: 12,
        };
        let mut trainer = trainer_with(executor, config);
        let (results, tensors) = train(&mut trainer, 8);
        let bad = results
            .iter()
            .find(|result| !result.ok)
            .unwrap_or_else(|| panic!("{name}: {results:?}"));
        assert!(
            tensors.iter().flatten().all(|v| v.is_finite()),
            "{name}: the last good parameters are kept"
        );
        let found = pollster::block_on(trainer.explain(bad.step)).expect("runs");
        assert!(
            found.is_some(),
            "{name}: step {} has no first non-finite tensor",
            bad.step
        );
    }
}

/// A steady step of the GPU executor: one submission, one pass, nothing created.
#[test]
fn a_steady_step_creates_nothing() {
    let Some(executor) = gpu_executor() else {
        return;
    };
    let mut trainer = trainer(Box::new(executor));
    train(&mut trainer, 2);
    let before = trainer.counts();
    for _ in 0..5 {
        trainer.step().expect("runs");
    }
    let after = trainer.counts();
    println!("2 steps: {before:?}\n7 steps: {after:?}");
    assert_eq!(after.submits - before.submits, 5);
    assert_eq!(after.passes - before.passes, 5);
    assert_eq!(
        (after.buffers, after.bind_groups, after.pipelines),
        (before.buffers, before.bind_groups, before.pipelines)
    );
}

/// The update that a finite gradient makes may overflow; whoever looks at the parameters finds it by name.
#[test]
fn an_update_that_overflows_is_found_in_the_parameters() {
    for (name, executor) in executors() {
        let mut config = config();
        config.schedule = Schedule {
            kind: ScheduleKind::Constant,
            lr: 3e38,
            min_lr: 0.0,
            warmup: 0,
            steps: 12,
        };
        config.update.weight_decay = 10.0;
        let mut trainer = trainer_with(executor, config);
        let (results, tensors) = train(&mut trainer, 2);
        assert!(!results[1].ok, "{name}: {results:?}");
        assert!(tensors[0].iter().any(|v| !v.is_finite()), "{name}");
        let found = pollster::block_on(trainer.explain(2))
            .expect("runs")
            .expect("is found");
        assert_eq!(found.step, "parameters", "{name}: {found:?}");
    }
}
