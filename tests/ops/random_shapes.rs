//! Property tests: random shapes and values, every executor against the oracle, gradients against finite differences.

use braid_engine::ops::attention::attention;
use braid_engine::ops::copy::copy;
use braid_engine::ops::cross_entropy::cross_entropy;
use braid_engine::ops::depth_attention::{DepthMix, depth_attention};
use braid_engine::ops::matmul::linear;
use braid_engine::ops::rms_norm::rms_norm;
use braid_engine::ops::swiglu::swiglu;
use braid_tests::{Case, F32, F32_LONG};
use proptest::prelude::{Strategy, any};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Run a property on a few cases from a fixed seed: the same cases on every machine.
fn check<S: Strategy>(cases: u32, strategy: S, property: impl Fn(S::Value)) {
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    TestRunner::new_with_rng(config, rng)
        .run(&strategy, |value| {
            property(value);
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn linear_on_random_shapes() {
    check(
        16,
        (1..90_u32, 1..90_u32, 1..90_u32, any::<u64>()),
        |(rows, from, to, seed)| {
            let case = Case::seeded(seed)
                .tracked("x", [rows, from])
                .parameter("w", [to, from]);
            case.check(F32, |tape, x| Ok(vec![linear(tape, x["x"], x["w"])?]));
        },
    );
}

#[test]
fn norms_and_activations_on_random_shapes() {
    check(
        12,
        (1..90_u32, 2..130_u32, any::<u64>()),
        |(rows, dim, seed)| {
            let case = Case::seeded(seed)
                .tracked("x", [rows, dim])
                .tracked("y", [rows, dim])
                .parameter("gain", [dim]);
            case.check(F32, |tape, x| {
                let norm = rms_norm(tape, x["x"], x["gain"], 1e-6)?;
                Ok(vec![swiglu(tape, norm, x["y"])?])
            });
        },
    );
}

#[test]
fn attention_on_random_shapes() {
    let shapes = (
        1..3_u32,
        1..40_u32,
        1..3_u32,
        1..3_u32,
        1..20_u32,
        any::<u64>(),
    );
    check(
        10,
        shapes,
        |(sequences, context, kv_heads, group, half, seed)| {
            let (heads, dim) = (kv_heads * group, 2 * half);
            let case = Case::seeded(seed)
                .tracked("q", [sequences, context, heads, dim])
                .tracked("k", [sequences, context, kv_heads, dim])
                .tracked("v", [sequences, context, kv_heads, dim]);
            // Scores of unnormalised vectors reach 20: exp amplifies their rounding.
            case.check(F32_LONG, |tape, x| {
                Ok(vec![attention(tape, x["q"], x["k"], x["v"])?])
            });
        },
    );
}

#[test]
fn depth_attention_on_random_shapes() {
    let shapes = (
        1..40_u32,
        1..100_u32,
        1..6_usize,
        any::<bool>(),
        any::<bool>(),
        any::<u64>(),
    );
    check(
        12,
        shapes,
        |(rows, dim, sources, centered, crossed, seed)| {
            let names: Vec<String> = (0..sources).map(|source| format!("s{source}")).collect();
            let mut case = Case::seeded(seed)
                .parameter("query", [2, dim])
                .scaled(0.3, 0.0)
                .parameter("gain", [dim]);
            for name in &names {
                case = case.tracked(name, [rows, dim]);
            }
            case.check(F32_LONG, |tape, x| {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let (history, slots) = x.history(tape, &names, rows, dim)?;
                let pair = |at: usize| {
                    (
                        slots[at],
                        slots[if crossed { sources - 1 - at } else { at }],
                    )
                };
                let pairs: Vec<_> = (0..sources).map(pair).collect();
                let mix = DepthMix {
                    centered,
                    ..DepthMix::softmax(1e-6)
                };
                let (mixed, _) =
                    depth_attention(tape, history, &pairs, x["query"], 1, x["gain"], &mix)?;
                Ok(vec![copy(tape, mixed)?])
            });
        },
    );
}

#[test]
fn cross_entropy_on_random_shapes() {
    check(
        12,
        (1..60_u32, 1..200_u32, any::<u64>()),
        |(rows, vocab, seed)| {
            let case =
                Case::seeded(seed)
                    .tracked("logits", [rows, vocab])
                    .ints("labels", [rows], vocab);
            case.check(F32, |tape, x| {
                Ok(vec![
                    cross_entropy(tape, x["logits"], x["labels"], 0.5)?.loss,
                ])
            });
        },
    );
}
