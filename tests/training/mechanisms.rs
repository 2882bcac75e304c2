//! What holds for one mechanism in `repeatable.rs` holds for all: a resumed run is the run, recomputed activations change no
//! bit, gradients accumulate, and the loss falls.

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
