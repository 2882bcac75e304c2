//! What holds for one mechanism in `repeatable.rs` holds for all: a resumed run is the run, recomputed activations change no
//! bit, gradients accumulate, and the loss falls.

use braid_engine::cpu::CpuExecutor;
use braid_engine::nn::residual::ResidualConfig;
use braid_engine::trainer::TrainConfig;
use braid_tests::executors;

use crate::repeatable::{bits, config, train, trainer_of};

/// Experts for a `residual` object to be followed by: sigmoid gates and a bias.
const EXPERTS: &str = r#""feed_forward": {"kind": "moe", "experts": 5, "top_k": 2, "gate": "sigmoid_bias",
    "shared_experts": 1, "intermediate_size": 9}"#;

/// Every kind, with its default settings, as JSON, and two of them with experts.
fn kinds() -> impl Iterator<Item = String> {
    let all = ResidualConfig::KINDS
        .iter()
        .filter_map(|kind| ResidualConfig::of_kind(kind));
    let with_experts = [r#"{"kind": "standard"}"#, r#"{"kind": "dar"}"#];
    all.map(|residual| serde_json::to_string(&residual).expect("is JSON"))
        .chain(with_experts.map(|residual| format!("{residual}, {EXPERTS}")))
}

#[test]
fn every_mechanism_learns_and_resumes_with_the_same_bits() {
    for residual in kinds() {
        for (((name, a), (_, b)), (_, c)) in
            executors().into_iter().zip(executors()).zip(executors())
        {
            let what = format!("{residual} on {name}");
            let (whole, tensors) = train(&mut trainer_of(&residual, a, config()), 12);
            assert!(whole.iter().all(|result| result.ok), "{what}: {whole:?}");
            assert!(whole[11].loss < whole[0].loss, "{what}: {whole:?}");

            let again = TrainConfig {
                checkpoint: true,
                ..config()
            };
            let (half, [values, first, second]) = train(&mut trainer_of(&residual, b, again), 6);
            let mut resumed = trainer_of(&residual, c, config());
            resumed
                .restore(6, &values, Some((&first, &second)))
                .expect("fits");
            let (rest, end) = train(&mut resumed, 6);
            assert_eq!([half, rest].concat(), whole, "{what}");
            assert_eq!(bits(&tensors), bits(&end), "{what}");
        }
    }
}

#[test]
fn every_mechanism_accumulates_gradients() {
    for residual in kinds() {
        for (name, executor) in executors() {
            let accumulate = TrainConfig {
                accumulate: 2,
                ..config()
            };
            let (results, _) = train(&mut trainer_of(&residual, executor, accumulate), 12);
            let what = format!("{residual} on {name}: {results:?}");
            assert!(results.iter().all(|result| result.ok), "{what}");
            assert!(results[11].loss < results[0].loss, "{what}");
        }
    }
}

/// Experts on any number of threads, and with the losses of two passes: their mean, as that of the cross-entropy.
#[test]
fn experts_depend_on_neither_threads_nor_passes() {
    let residual = format!(r#"{{"kind": "standard"}}, {EXPERTS}"#);
    let cpu = || Box::new(CpuExecutor::<f32>::new(None));
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.expect("starts");
        pool.install(|| bits(&train(&mut trainer_of(&residual, cpu(), config()), 6).1))
    };
    let one = run(1);
    for threads in [2, 5] {
        assert_eq!(run(threads), one, "{threads} threads");
    }
    let first = |accumulate| {
        let config = TrainConfig {
            accumulate,
            ..config()
        };
        let (results, _) = train(&mut trainer_of(&residual, cpu(), config), 1);
        results[0].auxiliary.expect("there are experts")
    };
    let (single, double) = (first(1), first(2));
    // Not the same batches, but at the start of training both are near the values of an even router.
    for (one, two) in [(single.balance, double.balance), (single.z, double.z)] {
        assert!((two / one - 1.0).abs() < 0.3, "{single:?}, {double:?}");
    }
}
