//! Mixtures of experts: the sorted form against the dense one, and what must hold for both.

use braid_engine::cpu::CpuExecutor;
use braid_engine::executor::Executor;
use braid_engine::models::config::{ExpertCompute, ExpertGate, MoeConfig};
use braid_engine::nn::{experts, swiglu};
use braid_engine::random::{below, stream};
use braid_tests::vectors::w;
use braid_tests::{Case, F32_LONG, Outcome, assert_close, compare, gpu_executor, oracle};

const PREFIX: &str = "model.layers.0.mlp.";
const BOTH: [ExpertCompute; 2] = [ExpertCompute::Sorted, ExpertCompute::Dense];
const GATES: [ExpertGate; 3] = [
    ExpertGate::SoftmaxTopk,
    ExpertGate::SoftmaxTopkRenorm,
    ExpertGate::SigmoidBias,
];

fn moe(experts: u32, top_k: u32, gate: ExpertGate) -> MoeConfig {
    MoeConfig {
        experts,
        top_k,
        gate,
        shared_experts: 0,
        intermediate_size: 6,
        aux_loss: 0.01,
        z_loss: 0.001,
        routed_scale: 2.5,
        bias_update_rate: 0.001,
        compute: ExpertCompute::Sorted,
    }
}

fn name(expert: u32, projection: &str) -> String {
    format!("{PREFIX}experts.{expert}.{projection}_proj.weight")
}

fn router() -> String {
    format!("{PREFIX}gate.weight")
}

/// One layer over tokens `x` `[tokens, dim]`, with random weights.
fn layer(seed: u64, moe: &MoeConfig, tokens: u32, dim: u32) -> Case {
    let width = moe.intermediate_size;
    let mut case = Case::seeded(seed)
        .tracked("x", [tokens, dim])
        .parameter(&router(), [moe.experts, dim]);
    let small = |columns: u32| 1.0 / f64::from(columns).sqrt();
    for (projection, shape) in [
        ("gate", [width, dim]),
        ("up", [width, dim]),
        ("down", [dim, width]),
    ] {
        for expert in 0..moe.experts {
            case = case
                .parameter(&name(expert, projection), shape)
                .scaled(small(shape[1]), 0.0);
        }
    }
    if moe.gate == ExpertGate::SigmoidBias {
        case = case
            .parameter(&experts::selection_bias(0), [moe.experts])
            .scaled(0.2, 0.0);
    }
    case
}

fn run(case: &Case, moe: &MoeConfig, executor: Box<dyn Executor>) -> Outcome {
    let mut outcome = case.run_on(executor, |tape, x| {
        let (y, _) = experts::forward(tape, moe, 0, x["x"])?;
        Ok(vec![y])
    });
    // A bias of the selection has no gradient.
    outcome.remove(&format!("grad.{}", experts::selection_bias(0)));
    outcome
}

fn compare_forms(
    what: &str,
    case: &Case,
    moe: &MoeConfig,
    executor: impl Fn() -> Box<dyn Executor>,
) {
    let [sorted, dense] = BOTH.map(|compute| run(case, &MoeConfig { compute, ..*moe }, executor()));
    compare(what, &sorted, &dense, F32_LONG);
}

fn cpu() -> Box<dyn Executor> {
    Box::new(CpuExecutor::<f32>::new(None).poisoned(true))
}

/// A random layer: any number of experts, and among the cases those that go wrong first.
fn random_layer(number: u64) -> (Case, MoeConfig, String) {
    let mut rng = stream(number, "layer");
    let mut pick = |low: usize, high: usize| (low + below(&mut rng, high - low + 1)) as u32;
    let gate = GATES[number as usize % 3];
    let experts = pick(2, 9);
    let mut top_k = pick(
        if gate == ExpertGate::SoftmaxTopk {
            1
        } else {
            2
        },
        experts as usize,
    );
    let (mut tokens, dim) = (pick(1, 90), pick(1, 40));
    match number % 7 {
        0 => top_k = experts,
        1 => tokens = pick(1, experts as usize - 1),
        _ => {}
    }
    let moe = MoeConfig {
        intermediate_size: pick(1, 30),
        ..moe(experts, top_k, gate)
    };
    let mut case = layer(number, &moe, tokens, dim);
    if number % 7 == 2 {
        // The first channel is 1, and its weights decide: expert 0 takes every token, expert 1 none that it need not.
        let rows = (0..experts).flat_map(|expert| {
            let first = [40.0, -40.0].get(expert as usize).copied();
            let own = case.input(&router())[(expert * dim) as usize..][..dim as usize].to_vec();
            let rest = own.into_iter().skip(1).map(|v| 0.1 * v);
            let first = first.unwrap_or(0.1 * f64::from(expert));
            std::iter::once(first).chain(rest).collect::<Vec<_>>()
        });
        let rows: Vec<f64> = rows.map(|v| f64::from(v as f32)).collect();
        let mut x = case.input("x").to_vec();
        x.chunks_mut(dim as usize).for_each(|token| token[0] = 1.0);
        case = case.replaced(&router(), &rows).replaced("x", &x);
    }
    let what = format!("case {number}: {moe:?}, {tokens} tokens of {dim}");
    (case, moe, what)
}

#[test]
fn sorted_and_dense_agree_on_two_hundred_layers() {
    for number in 0..200 {
        let (case, moe, what) = random_layer(number);
        compare_forms(&what, &case, &moe, cpu);
    }
}

#[test]
fn sorted_and_dense_agree_on_the_gpu() {
    if gpu_executor().is_none() {
        return;
    }
    for number in 0..42 {
        let (case, moe, what) = random_layer(number);
        compare_forms(&what, &case, &moe, || {
            Box::new(gpu_executor().expect("it was there"))
        });
    }
}

/// Both forms against finite differences and on every executor, the router's gradient among them.
#[test]
fn gradients_agree_everywhere() {
    for (seed, gate) in GATES.into_iter().enumerate() {
        for compute in BOTH {
            let moe = MoeConfig {
                compute,
                ..moe(5, 2, gate)
            };
            let case = layer(seed as u64, &moe, 37, 8);
            case.check(F32_LONG, |tape, x| {
                Ok(vec![experts::forward(tape, &moe, 0, x["x"])?.0])
            });
        }
    }
}

/// G12 of the notes on residual mechanisms, section 8. Weights there are `[in, out]`.
#[test]
fn a_layer_gives_what_the_notes_say() {
    let transposed = |values: &[f64], rows: usize, columns: usize| -> Vec<f64> {
        let at = |i: usize| values[i % rows * columns + i / rows];
        (0..rows * columns).map(at).collect()
    };
    for compute in BOTH {
        let moe = MoeConfig {
            intermediate_size: 2,
            compute,
            ..moe(4, 2, ExpertGate::SoftmaxTopkRenorm)
        };
        let mut case = layer(1, &moe, 3, 3)
            .replaced("x", &w(141, 9))
            .replaced(&router(), &transposed(&w(142, 12), 3, 4))
            .output_gradient(&w(146, 9));
        for (projection, series) in [("gate", 143), ("up", 144), ("down", 145)] {
            let all = w(series, 24);
            let (rows, columns) = if projection == "down" { (2, 3) } else { (3, 2) };
            for (expert, values) in (0..).zip(all.chunks(6)) {
                let values = transposed(values, rows, columns);
                case = case.replaced(&name(expert, projection), &values);
            }
        }
        let outcome = run(&case, &moe, oracle());
        let y = [
            -0.132_665_8,
            0.176_868_8,
            -0.123_844_6,
            -0.006_281_0,
            -0.027_629_7,
            0.019_649_1,
            -0.058_081_0,
            -0.010_085_3,
            0.007_253_5,
        ];
        assert_close("y", &outcome["out.0"], &y, 1e-6);
        let dx = [
            -0.076_516_1,
            -0.093_730_4,
            0.240_996_3,
            -0.071_225_4,
            -0.059_839_3,
            0.060_025_8,
            -0.059_695_1,
            0.053_993_3,
            -0.117_799_2,
        ];
        assert_close("dx", &outcome["grad.x"], &dx, 1e-6);
        let drouter = [
            -0.000_283_1,
            0.000_283_1,
            0.091_139_4,
            -0.091_139_4,
            -0.000_010_1,
            0.000_010_1,
            -0.081_800_1,
            0.081_800_1,
            -0.000_053_3,
            0.000_053_3,
            -0.036_204_9,
            0.036_204_9,
        ];
        let got = &outcome[&format!("grad.{}", router())];
        assert_close("router", got, &transposed(&drouter, 3, 4), 1e-6);
    }
}

/// What a dense feed-forward with the weights of an expert gives.
fn one_expert(case: &Case, expert: u32) -> Vec<f64> {
    let outcome = case.oracle(|tape, x| {
        let prefix = format!("{PREFIX}experts.{expert}.");
        Ok(vec![swiglu::forward(tape, &prefix, x["x"])?])
    });
    outcome["out.0"].clone()
}

#[test]
fn a_single_expert_is_a_dense_feed_forward() {
    for compute in BOTH {
        let moe = MoeConfig {
            compute,
            ..moe(1, 1, ExpertGate::SoftmaxTopk)
        };
        let case = layer(1, &moe, 20, 7);
        let outcome = run(&case, &moe, oracle());
        assert_close("y", &outcome["out.0"], &one_expert(&case, 0), 1e-14);
    }
}

#[test]
fn all_experts_together_are_the_mixture_weighted_by_softmax() {
    let moe = moe(3, 3, ExpertGate::SoftmaxTopkRenorm);
    let (tokens, dim) = (20, 7);
    let case = layer(2, &moe, tokens as u32, dim as u32);
    let outputs: Vec<Vec<f64>> = (0..3).map(|expert| one_expert(&case, expert)).collect();
    let (x, weights) = (case.input("x"), case.input(&router()));
    let mut want = Vec::new();
    for token in 0..tokens {
        let logit = |expert: usize| {
            let row = &weights[expert * dim..][..dim];
            let x = &x[token * dim..][..dim];
            row.iter().zip(x).map(|(a, b)| a * b).sum::<f64>()
        };
        let powers: Vec<f64> = (0..3).map(|expert| logit(expert).exp()).collect();
        let total: f64 = powers.iter().sum();
        want.extend((token * dim..(token + 1) * dim).map(|i| {
            let parts = powers.iter().zip(&outputs);
            parts.map(|(power, u)| power / total * u[i]).sum::<f64>()
        }));
    }
    let outcome = run(&case, &moe, oracle());
    assert_close("y", &outcome["out.0"], &want, 1e-13);
}

#[test]
fn the_order_of_experts_does_not_matter() {
    for gate in GATES {
        for compute in BOTH {
            let moe = MoeConfig {
                compute,
                ..moe(4, 2, gate)
            };
            let case = layer(3, &moe, 33, 5);
            let mut turned = case.clone();
            let shifted = |values: &[f64], by: usize| {
                let mut values = values.to_vec();
                values.rotate_left(by);
                values
            };
            turned = turned.replaced(&router(), &shifted(case.input(&router()), 5));
            for projection in ["gate", "up", "down"] {
                for expert in 0..4 {
                    let from = case.input(&name((expert + 1) % 4, projection)).to_vec();
                    turned = turned.replaced(&name(expert, projection), &from);
                }
            }
            if gate == ExpertGate::SigmoidBias {
                let bias = experts::selection_bias(0);
                turned = turned.replaced(&bias, &shifted(case.input(&bias), 1));
            }
            let (before, after) = (run(&case, &moe, oracle()), run(&turned, &moe, oracle()));
            assert_close("y", &after["out.0"], &before["out.0"], 1e-13);
            assert_close("dx", &after["grad.x"], &before["grad.x"], 1e-12);
        }
    }
}

#[test]
fn equal_tokens_get_equal_outputs() {
    for compute in BOTH {
        let moe = MoeConfig {
            compute,
            ..moe(6, 2, ExpertGate::SoftmaxTopkRenorm)
        };
        let case = layer(4, &moe, 40, 8);
        let twice = [&case.input("x")[..160], &case.input("x")[..160]].concat();
        let outcome = run(&case.replaced("x", &twice), &moe, cpu());
        let (first, second) = outcome["out.0"].split_at(160);
        assert_close("y", first, second, 1e-7);
    }
}
