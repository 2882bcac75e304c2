//! Studies of whole models: closed cases of what states and routes are worth, for every mechanism and on every executor.

use braid_engine::data::{Dataset, Task, TaskKind};
use braid_engine::executor::Executor;
use braid_engine::models::ModelConfig;
use braid_engine::nn::Batch;
use braid_engine::optim::{Schedule, ScheduleKind, UpdateConfig};
use braid_engine::trainer::study::{Corruption, Damage};
use braid_engine::trainer::{Study, StudyOptions, TrainConfig, Trainer};
use braid_tests::{assert_close, executors, oracle};
use pollster::block_on;

/// Mechanisms with states that can be replaced, and how many streams they have.
const MECHANISMS: [(&str, u32); 15] = [
    (r#"{"kind": "standard"}"#, 1),
    (r#"{"kind": "attn_res", "sublayers_per_block": 1}"#, 1),
    (
        r#"{"kind": "attn_res", "sublayers_per_block": 3, "evaluation": "two_phase"}"#,
        1,
    ),
    (
        r#"{"kind": "attn_res", "sublayers_per_block": 1, "depth_heads": 2}"#,
        1,
    ),
    (r#"{"kind": "delta", "mode": "null", "null_logit": 0.5}"#, 1),
    (
        r#"{"kind": "delta", "granularity": "block", "sublayers_per_block": 2}"#,
        1,
    ),
    (r#"{"kind": "dar", "layers_per_block": 1}"#, 2),
    (
        r#"{"kind": "dar", "layers_per_block": 1, "route": "self_kv"}"#,
        2,
    ),
    (r#"{"kind": "mhc2_matched"}"#, 2),
    (r#"{"kind": "hyper_connections", "streams": 3}"#, 3),
    (r#"{"kind": "mhc", "streams": 2}"#, 2),
    (r#"{"kind": "sep_v", "sublayers_per_block": 2}"#, 1),
    (r#"{"kind": "cumulative", "read": "replace"}"#, 1),
    (r#"{"kind": "dense_former"}"#, 1),
    (r#"{"kind": "transparent"}"#, 1),
];

/// A model after a few large steps, so that weights and gates differ from token to token.
fn trained(executor: Box<dyn Executor>, residual: &str, steps: u64) -> Trainer {
    let context = 16;
    let data = Dataset::Task(Task::new(TaskKind::Copy, context as usize).expect("a task"));
    let model = format!(
        r#"{{"vocab_size": {}, "hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 3, "num_attention_heads": 2,
            "num_key_value_heads": 2, "head_dim": 6, "initializer_range": 0.3, "residual": {residual}}}"#,
        data.vocab_size()
    );
    let config = TrainConfig {
        batch: Batch {
            sequences: 3,
            context,
        },
        accumulate: 1,
        checkpoint: false,
        schedule: Schedule {
            kind: ScheduleKind::Constant,
            lr: 2e-2,
            min_lr: 2e-2,
            warmup: 0,
            steps: 100,
        },
        update: UpdateConfig {
            beta1: 0.9,
            beta2: 0.95,
            eps: 1e-8,
            weight_decay: 0.0,
            clip: 1.0,
            routing_lr_mult: 3.0,
            muon: None,
        },
        seed: 3,
        eval_batches: 2,
    };
    let model = ModelConfig::from_json(&model).expect("a valid configuration");
    let mut trainer = Trainer::new(executor, model, config, data).expect("fits");
    (0..steps).for_each(|_| trainer.step().expect("runs"));
    let losses = block_on(trainer.collect()).expect("reads");
    assert!(losses.iter().all(|loss| loss.ok), "{residual}");
    trainer
}

fn study(trainer: &mut Trainer) -> Study {
    let options = StudyOptions {
        sequences: 7,
        draws: 50,
        seed: 1,
    };
    block_on(trainer.study(&options)).expect("fits")
}

fn damage(
    trainer: &mut Trainer,
    study: &Study,
    boundary: usize,
    streams: &[u32],
    frozen: bool,
) -> Damage {
    let corruption = Corruption {
        boundary,
        streams: streams.to_vec(),
        frozen,
    };
    block_on(trainer.damage(study, &[corruption]))
        .expect("runs")
        .remove(0)
}

#[test]
fn replacing_nothing_does_nothing_and_replacing_all_does_something() {
    for (residual, streams) in MECHANISMS {
        let mut trainer = trained(oracle(), residual, 12);
        let study = study(&mut trainer);
        assert_eq!(
            (study.sequences(), study.streams()),
            (7, streams),
            "{residual}"
        );
        assert!(!study.boundaries().is_empty(), "{residual}");
        let all: Vec<u32> = (0..streams).collect();
        for boundary in 0..study.boundaries().len() {
            for frozen in [false, true] {
                let clean = damage(&mut trainer, &study, boundary, &[], frozen);
                assert_eq!(
                    clean.divergence,
                    vec![0.0; 7],
                    "{residual}, boundary {boundary}, frozen {frozen}"
                );
                let broken = damage(&mut trainer, &study, boundary, &all, frozen);
                let sum: f64 = broken.divergence.iter().sum();
                assert!(
                    sum.is_finite() && sum > 1e-9,
                    "{residual}, boundary {boundary}, frozen {frozen}: {sum:e}"
                );
            }
        }
        // Afterwards everything is as it was.
        assert_eq!(
            damage(&mut trainer, &study, 0, &[], false).divergence,
            vec![0.0; 7],
            "{residual}"
        );
    }
}

#[test]
fn one_stream_rescues_everything_by_construction() {
    let mut trainer = trained(oracle(), r#"{"kind": "standard"}"#, 12);
    let study = study(&mut trainer);
    let rescue = block_on(trainer.rescue(&study)).expect("runs");
    assert_eq!(
        rescue.len(),
        2 * 3,
        "the ends of three layers, frozen and live"
    );
    for at in &rescue {
        assert_eq!(
            (at.gain.len(), at.gain[0].value, at.necessity[0].value),
            (1, 1.0, 1.0)
        );
        assert!(at.damage.value > 0.0 && at.asymmetry.is_none() && at.redundancy.is_none());
    }
    // Nothing is routed: frozen and live are the same.
    for pair in rescue.chunks(2) {
        assert!(pair[0].frozen && !pair[1].frozen && pair[0].damage == pair[1].damage);
    }
}

#[test]
fn equal_streams_are_worth_the_same_and_each_restores_what_the_other_lost() {
    // At its start the streams of mHC with equal biases are equal: what is read of a stream depends on its weight alone.
    let residual = r#"{"kind": "mhc", "streams": 2, "init": "megatron"}"#;
    let mut trainer = trained(oracle(), residual, 0);
    let values: Vec<f32> = {
        let parameters = trainer.parameters().clone();
        let mut values = block_on(trainer.values()).expect("reads");
        for (number, spec) in parameters.specs().iter().enumerate() {
            if spec.name.contains("mhc.phi") {
                values[parameters.range(number)].fill(0.0);
            }
        }
        values
    };
    trainer.restore(0, &values, None).expect("fits");
    let study = study(&mut trainer);
    for at in block_on(trainer.rescue(&study)).expect("runs") {
        let [first, second] = [at.gain[0].value, at.gain[1].value];
        assert!((first - second).abs() < 1e-9, "{first} {second}");
        assert!(at.asymmetry.expect("two streams").value.abs() < 1e-9);
        assert!((at.necessity[0].value - (1.0 - first)).abs() < 1e-9);
    }
}

#[test]
fn gain_and_necessity_follow_from_the_damages() {
    for (residual, streams) in [
        (r#"{"kind": "dar", "layers_per_block": 1}"#, 2),
        (r#"{"kind": "mhc", "streams": 3}"#, 3),
    ] {
        let mut trainer = trained(oracle(), residual, 12);
        let study = study(&mut trainer);
        let mean = |damage: Damage| damage.divergence.iter().sum::<f64>() / 7.0;
        let rescue = block_on(trainer.rescue(&study)).expect("runs");
        for at in &rescue {
            let boundary = study
                .boundaries()
                .iter()
                .position(|&site| site == at.site)
                .expect("it was asked");
            let all: Vec<u32> = (0..streams).collect();
            let whole = mean(damage(&mut trainer, &study, boundary, &all, at.frozen));
            assert_close(residual, &[at.damage.value], &[whole], 1e-12);
            for stream in 0..streams {
                let others: Vec<u32> = all
                    .iter()
                    .copied()
                    .filter(|&other| other != stream)
                    .collect();
                let gain =
                    1.0 - mean(damage(&mut trainer, &study, boundary, &others, at.frozen)) / whole;
                let need =
                    mean(damage(&mut trainer, &study, boundary, &[stream], at.frozen)) / whole;
                let got = [
                    at.gain[stream as usize].value,
                    at.necessity[stream as usize].value,
                ];
                assert_close(residual, &got, &[gain, need], 1e-9);
            }
        }
    }
}

#[test]
fn frozen_routing_is_not_live_routing_where_there_is_routing() {
    for residual in [
        r#"{"kind": "attn_res", "sublayers_per_block": 2}"#,
        r#"{"kind": "delta"}"#,
        r#"{"kind": "dar", "layers_per_block": 1}"#,
        r#"{"kind": "mhc2_matched"}"#,
        r#"{"kind": "hyper_connections", "streams": 2}"#,
    ] {
        let mut trainer = trained(oracle(), residual, 12);
        let study = study(&mut trainer);
        let streams: Vec<u32> = (0..study.streams()).collect();
        let [frozen, live] =
            [true, false].map(|frozen| damage(&mut trainer, &study, 0, &streams, frozen));
        assert_ne!(frozen, live, "{residual}");
    }
}

#[test]
fn every_executor_finds_the_same() {
    for residual in [
        r#"{"kind": "dar", "layers_per_block": 1}"#,
        r#"{"kind": "hyper_connections", "streams": 2}"#,
    ] {
        let mut trainer = trained(oracle(), residual, 12);
        let values = block_on(trainer.values()).expect("reads");
        let find = |executor| {
            let mut trainer = trained(executor, residual, 0);
            trainer.restore(12, &values, None).expect("fits");
            let study = study(&mut trainer);
            let rescue = block_on(trainer.rescue(&study)).expect("runs");
            let similarity = block_on(trainer.similarity(&study, 1)).expect("runs");
            let routes = block_on(trainer.routes(&study)).expect("runs").routes;
            let depth = block_on(trainer.depth_report(&study)).expect("runs");
            let ranks = study.spread_report().ranks;
            let norms = depth
                .iter()
                .flat_map(|at| [Some(at.input), at.output, at.gradient]);
            [
                (
                    "damage",
                    rescue
                        .iter()
                        .map(|at| at.damage.value)
                        .collect::<Vec<f64>>(),
                ),
                (
                    "gain",
                    rescue
                        .iter()
                        .flat_map(|at| &at.gain)
                        .map(|gain| gain.value)
                        .collect(),
                ),
                (
                    "similarity",
                    similarity.pairs.iter().map(|pair| pair.cka.value).collect(),
                ),
                (
                    "routes",
                    routes.iter().map(|route| route.loss_change.value).collect(),
                ),
                ("norms", norms.flatten().map(|norm| norm.value).collect()),
                (
                    "ranks",
                    ranks.iter().map(|ranks| ranks.erank.value).collect(),
                ),
            ]
        };
        let want = find(oracle());
        for (name, executor) in executors() {
            for ((what, got), (_, want)) in find(executor).iter().zip(&want) {
                assert_close(&format!("{what} of {residual} on {name}"), got, want, 2e-3);
            }
        }
    }
}

#[test]
fn watching_and_studying_change_no_bits_of_a_training() {
    let residual = r#"{"kind": "dar", "layers_per_block": 1}"#;
    let last = |studied: bool| {
        let fast = executors().remove(0).1;
        let mut trainer = trained(fast, residual, 5);
        if studied {
            let study = study(&mut trainer);
            block_on(trainer.rescue(&study)).expect("runs");
            block_on(trainer.depth_report(&study)).expect("runs");
        }
        (0..5).for_each(|_| trainer.step().expect("runs"));
        block_on(trainer.values()).expect("reads")
    };
    assert_eq!(last(false), last(true));
}

#[test]
fn every_sublayer_has_a_gradient_and_the_read_out_none() {
    let mut trainer = trained(oracle(), r#"{"kind": "standard"}"#, 12);
    let study = study(&mut trainer);
    let depth = block_on(trainer.depth_report(&study)).expect("runs");
    assert_eq!(depth.len(), 7);
    assert!(
        depth[..6]
            .iter()
            .all(|at| at.gradient.expect("a sublayer").value > 0.0)
    );
    assert!(depth[6].gradient.is_none() && depth[6].output.is_none());
}

#[test]
fn equal_weights_look_at_nothing_in_particular() {
    // Queries start at zero.
    let mut trainer = trained(oracle(), r#"{"kind": "dar", "layers_per_block": 1}"#, 0);
    let study = study(&mut trainer);
    let report = study.routing_report(1);
    assert!(!report.divergences.is_empty());
    for read in &report.reads {
        let n = read.sources.len() as f64;
        let sharpness = read.sharpness.expect("softmax").value;
        assert!(
            (sharpness - 1.0 / n).abs() < 1e-12
                && (read.entropy.expect("softmax").value - n.ln()).abs() < 1e-12
        );
        assert!((read.effective_sources.expect("softmax").value - n).abs() < 1e-9);
        assert!(
            read.distance.value.abs() < 1e-12,
            "of equals the newest counts"
        );
    }
    assert!(
        report
            .divergences
            .iter()
            .all(|at| at.divergence.value.abs() < 1e-12)
    );
    // The first states of the two streams are the same tensor.
    let similarity = block_on(trainer.similarity(&study, 1)).expect("runs");
    let first = &similarity.pairs[0];
    assert_eq!((first.a, first.b), (0, 1));
    assert!((first.cka.value - 1.0).abs() < 1e-9);
    let routes = block_on(trainer.routes(&study)).expect("runs");
    let even = routes.routes.iter().filter(|route| route.edit == "uniform");
    assert!(
        even.clone().count() > 0
            && even
                .into_iter()
                .all(|route| route.loss_change.value.abs() < 1e-12)
    );
    assert!(
        routes
            .routes
            .is_sorted_by(|a, b| a.loss_change.value >= b.loss_change.value)
    );
}

#[test]
fn what_does_not_exist_is_refused_with_a_sentence() {
    let mut trainer = trained(oracle(), r#"{"kind": "dar", "layers_per_block": 1}"#, 0);
    let study = study(&mut trainer);
    for (boundary, streams) in [(99, vec![0]), (0, vec![2])] {
        let corruption = Corruption {
            boundary,
            streams,
            frozen: false,
        };
        let error =
            block_on(trainer.damage(&study, &[corruption])).expect_err("there is no such thing");
        assert!(
            error.to_string().contains("streams, both counted from 0"),
            "{error}"
        );
    }
}
