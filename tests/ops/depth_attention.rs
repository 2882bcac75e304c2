use std::collections::BTreeMap;
use std::sync::Arc;

use braid_engine::Result;
use braid_engine::executor::{Data, Work};
use braid_engine::ops::copy::copy;
use braid_engine::ops::depth_attention::{
    Activation, DepthMix, depth_attention, depth_attention_open,
};
use braid_engine::params::Parameters;
use braid_engine::tape::{Tape, Tensor};
use braid_tests::{Case, EXACT, F32, Inputs, Outcome, assert_close, executors, oracle};

const PLAIN: DepthMix = DepthMix::softmax(1e-6);
const CENTERED: DepthMix = DepthMix {
    centered: true,
    ..PLAIN
};
const NULL: DepthMix = DepthMix {
    null_logit: Some(0.3),
    ..PLAIN
};

/// A case with sources `s0`, `s1`, .. and parameters `query` `[queries, dim]`, `gain` `[dim]`.
fn case(seed: u64, rows: u32, dim: u32, sources: usize, queries: u32) -> Case {
    let mut case = Case::seeded(seed);
    for i in 0..sources {
        case = case.tracked(&format!("s{i}"), [rows, dim]);
    }
    case.parameter("query", [queries, dim])
        .scaled(0.5, 0.0)
        .parameter("gain", [dim])
        .scaled(0.1, 1.0)
}

/// One read for each list of (key, value) pairs: read j asks with row j of the query.
fn reads(
    tape: &mut Tape,
    x: &Inputs,
    [rows, dim]: [u32; 2],
    sources: usize,
    pairs: &[Vec<(usize, usize)>],
    mix: &DepthMix,
) -> Result<Vec<Tensor>> {
    let names: Vec<String> = (0..sources).map(|i| format!("s{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (history, slots) = x.history(tape, &names, rows, dim)?;
    let mut mixed = Vec::new();
    for (row, pairs) in pairs.iter().enumerate() {
        let pairs: Vec<_> = pairs.iter().map(|&(k, v)| (slots[k], slots[v])).collect();
        let row = row as u32;
        let (read, weights) =
            depth_attention(tape, history, &pairs, x["query"], row, x["gain"], mix)?;
        tape.output(&format!("weights.{row}"), weights);
        mixed.push(read);
    }
    Ok(mixed)
}

fn same(count: usize) -> Vec<(usize, usize)> {
    (0..count).map(|i| (i, i)).collect()
}

#[test]
fn agrees_everywhere_with_keys_that_are_values() {
    for (seed, (rows, dim, count)) in [
        (1, 1, 2),
        (7, 5, 1),
        (7, 63, 5),
        (70, 64, 2),
        (7, 65, 3),
        (7, 96, 5),
        (3, 12, 64),
    ]
    .into_iter()
    .enumerate()
    {
        for mix in [PLAIN, CENTERED, NULL] {
            case(seed as u64, rows, dim, count, 1).check(F32, |tape, x| {
                reads(tape, x, [rows, dim], count, &[same(count)], &mix)
            });
        }
    }
}

#[test]
fn agrees_everywhere_with_two_reads_of_two_streams() {
    // Slots 0..3 are stream 0, slots 3..6 stream 1.
    let stream = |j: usize| (0..3).map(move |i| 3 * j + i);
    let pairs = |key: usize, value: usize| stream(key).zip(stream(value)).collect::<Vec<_>>();
    let routes = [
        ("crossed", [pairs(1, 0), pairs(0, 1)]),
        ("own", [pairs(0, 0), pairs(1, 1)]),
        ("crossed values", [pairs(0, 1), pairs(1, 0)]),
        ("fixed", [pairs(0, 1), pairs(0, 1)]),
    ];
    for (seed, (route, pairs)) in routes.into_iter().enumerate() {
        println!("{route}");
        for (rows, dim) in [(7, 10), (20, 64)] {
            case(seed as u64, rows, dim, 6, 2).check(F32, |tape, x| {
                reads(tape, x, [rows, dim], 6, &pairs, &PLAIN)
            });
        }
    }
}

/// The ablations: rows, width, heads.
const VARIANTS: [(u32, u32, u32); 6] = [
    (7, 12, 1),
    (7, 12, 3),
    (20, 64, 4),
    (7, 10, 5),
    (7, 63, 7),
    (3, 5, 5),
];

#[test]
fn agrees_everywhere_with_sigmoids_heads_and_keys_that_are_not_normalised() {
    for (seed, (rows, dim, heads)) in VARIANTS.into_iter().enumerate() {
        for activation in [Activation::Softmax, Activation::Sigmoid] {
            for key_norm in [true, false] {
                let mix = DepthMix {
                    activation,
                    heads,
                    key_norm,
                    ..PLAIN
                };
                // Keys of several lengths, and a query that does not decide everything.
                let crossed = vec![(0, 1), (1, 0), (2, 2), (0, 0)];
                for pairs in [same(4), crossed] {
                    case(seed as u64, rows, dim, 4, 1).check(F32, |tape, x| {
                        reads(tape, x, [rows, dim], 4, std::slice::from_ref(&pairs), &mix)
                    });
                }
            }
        }
    }
}

#[test]
fn heads_go_with_a_null_source_and_with_centered_weights() {
    for mix in [CENTERED, NULL] {
        let mix = DepthMix { heads: 3, ..mix };
        case(14, 7, 12, 3, 1).check(F32, |tape, x| reads(tape, x, [7, 12], 3, &[same(3)], &mix));
    }
}

/// Scores and weights by the formulas, for one token.
#[test]
fn heads_score_their_channels_by_the_length_of_the_whole_key() {
    for (activation, key_norm) in [
        (Activation::Softmax, true),
        (Activation::Softmax, false),
        (Activation::Sigmoid, true),
    ] {
        let mut token = Token::arbitrary(3, 6);
        token.mix = DepthMix {
            activation,
            heads: 2,
            key_norm,
            ..PLAIN
        };
        let got = token.run();
        for head in 0..2 {
            let channels = 3 * head..3 * head + 3;
            let e: Vec<f64> = token
                .keys
                .iter()
                .map(|key| {
                    let length = if key_norm {
                        (dot(key, key) / 6.0 + 1e-6).sqrt()
                    } else {
                        1.0
                    };
                    let product: f64 = channels
                        .clone()
                        .map(|c| token.query[c] * token.gain[c] * key[c])
                        .sum();
                    (product / length).exp()
                })
                .collect();
            let total: f64 = e.iter().sum();
            let weights: Vec<f64> = match activation {
                Activation::Softmax => e.iter().map(|e| e / total).collect(),
                Activation::Sigmoid => e.iter().map(|e| e / (1.0 + e)).collect(),
            };
            assert_close("weights", &got["weights"][3 * head..][..3], &weights, 1e-12);
            let mixed: Vec<f64> = channels
                .map(|c| (0..3).map(|i| weights[i] * token.values[i][c]).sum())
                .collect();
            assert_close("mixed", &got["mixed"][3 * head..][..3], &mixed, 1e-12);
        }
    }
}

#[test]
fn the_logarithm_of_the_sum_agrees_everywhere() {
    for (seed, (rows, dim, count)) in [(1, 1, 1), (7, 12, 3), (20, 65, 5)].into_iter().enumerate() {
        case(seed as u64, rows, dim, count, 1).check(F32, |tape, x| {
            let names: Vec<String> = (0..count).map(|i| format!("s{i}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let (history, slots) = x.history(tape, &names, rows, dim)?;
            let pairs: Vec<_> = slots.iter().map(|&slot| (slot, slot)).collect();
            let (mixed, _, log_sum) =
                depth_attention_open(tape, history, &pairs, x["query"], 0, x["gain"], &PLAIN)?;
            Ok(vec![mixed, log_sum])
        });
    }
}

#[test]
fn only_a_plain_softmax_can_be_left_open() {
    case(15, 2, 4, 1, 1).oracle(|tape, x| {
        let (history, slots) = x.history(tape, &["s0"], 2, 4)?;
        let pairs = [(slots[0], slots[0])];
        for mix in [CENTERED, NULL, DepthMix { heads: 2, ..PLAIN }] {
            let open = depth_attention_open(tape, history, &pairs, x["query"], 0, x["gain"], &mix);
            let message = open.expect_err("refused").to_string();
            assert!(message.contains("only a plain softmax"), "{message}");
        }
        Ok(Vec::new())
    });
}

#[test]
fn a_slot_may_come_several_times_in_one_read() {
    let pairs = vec![(0, 1), (1, 0), (0, 0), (2, 0), (2, 2)];
    for mix in [PLAIN, CENTERED, NULL] {
        case(11, 7, 12, 3, 1).check(F32, |tape, x| {
            reads(tape, x, [7, 12], 3, std::slice::from_ref(&pairs), &mix)
        });
    }
}

#[test]
fn sources_without_a_gradient_get_none() {
    let case = Case::seeded(12)
        .plain("s0", [7, 12])
        .tracked("s1", [7, 12])
        .plain("s2", [7, 12])
        .parameter("query", [1, 12])
        .parameter("gain", [12]);
    case.check(F32, |tape, x| {
        reads(tape, x, [7, 12], 3, &[vec![(0, 1), (1, 2), (2, 2)]], &PLAIN)
    });
}

#[test]
fn queries_need_not_be_parameters() {
    for (query, gain) in [(true, false), (false, true), (false, false)] {
        let mut case = Case::seeded(13)
            .tracked("s0", [7, 12])
            .tracked("s1", [7, 12]);
        case = if query {
            case.tracked("query", [3, 12])
        } else {
            case.plain("query", [3, 12])
        };
        case = if gain {
            case.tracked("gain", [12])
        } else {
            case.plain("gain", [12])
        };
        case.check(F32, |tape, x| {
            reads(tape, x, [7, 12], 2, &[same(2), same(2)], &PLAIN)
        });
    }
}

#[test]
fn a_zero_query_weighs_all_sources_equally() {
    let zero = |mix: DepthMix| {
        let case = case(21, 7, 96, 5, 1);
        let mut again = Case::seeded(21);
        for i in 0..5 {
            again = again.tracked(&format!("s{i}"), [7, 96]);
        }
        again = again
            .parameter("query", [1, 96])
            .values(&[0.0; 96])
            .parameter("gain", [96])
            .values(case.input("gain"));
        let mean: Vec<f64> = (0..7 * 96)
            .map(|at| {
                (0..5)
                    .map(|i| again.input(&format!("s{i}"))[at])
                    .sum::<f64>()
                    / 5.0
            })
            .collect();
        let outcomes = executors().into_iter().map(|(name, executor)| {
            let outcome = again.run_on(executor, |tape, x| {
                reads(tape, x, [7, 96], 5, &[same(5)], &mix)
            });
            (name, outcome)
        });
        (mean, outcomes.collect::<Vec<_>>())
    };
    let alive = |outcome: &Outcome| outcome["grad.query"].iter().any(|&v| v.abs() > 1e-3);

    let (mean, outcomes) = zero(PLAIN);
    for (name, outcome) in outcomes {
        assert_close(name, &outcome["weights.0"], &[0.2; 35], F32);
        assert_close(name, &outcome["out.0"], &mean, F32);
        assert_close(name, &outcome["grad.gain"], &[0.0; 96], EXACT);
        assert!(alive(&outcome), "{name}: the router can learn");
    }
    for (name, outcome) in zero(CENTERED).1 {
        assert!(outcome["out.0"].iter().all(|&v| v == 0.0), "{name}");
        assert!(alive(&outcome), "{name}: the router can learn");
    }
    let (mean, outcomes) = zero(DepthMix {
        null_logit: Some(0.0),
        ..PLAIN
    });
    let share: Vec<f64> = mean.iter().map(|v| v * 5.0 / 6.0).collect();
    for (name, outcome) in outcomes {
        assert_close(name, &outcome["weights.0"], &[1.0 / 6.0; 42], F32);
        assert_close(name, &outcome["out.0"], &share, F32);
    }
}

#[test]
fn a_single_source_is_passed_through_and_teaches_the_query_nothing() {
    let case = case(22, 7, 96, 1, 1);
    for (name, executor) in executors() {
        let outcome = case.run_on(executor, |tape, x| {
            reads(tape, x, [7, 96], 1, &[same(1)], &PLAIN)
        });
        assert_close(name, &outcome["out.0"], case.input("s0"), EXACT);
        assert_close(name, &outcome["weights.0"], &[1.0; 7], EXACT);
        for parameter in ["grad.query", "grad.gain"] {
            assert!(outcome[parameter].iter().all(|&v| v == 0.0), "{name}");
        }
    }
}

#[test]
fn large_scores_pick_one_source_and_stay_finite() {
    let mut case = Case::seeded(23);
    for i in 0..5 {
        case = case.tracked(&format!("s{i}"), [7, 96]);
    }
    case = case
        .parameter("query", [1, 96])
        .scaled(1000.0, 0.0)
        .parameter("gain", [96]);
    for (name, executor) in executors() {
        let outcome = case.run_on(executor, |tape, x| {
            reads(tape, x, [7, 96], 5, &[same(5)], &PLAIN)
        });
        assert!(outcome.values().flatten().all(|v| v.is_finite()), "{name}");
        for weights in outcome["weights.0"].chunks(5) {
            assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{name}");
            assert!(weights.iter().any(|&weight| weight > 0.9), "{name}");
        }
    }
}

/// What is said to one read of two sources, 4 channels wide.
fn refusal_of(mix: &DepthMix) -> String {
    let message = std::cell::RefCell::new(String::new());
    case(25, 1, 4, 2, 1).oracle(|tape, x| {
        if let Err(error) = reads(tape, x, [1, 4], 2, &[same(2)], mix) {
            message.replace(error.to_string());
        }
        Ok(Vec::new())
    });
    message.into_inner()
}

#[test]
fn refuses_too_many_sources_and_rows_that_do_not_exist() {
    let refusal = |count: usize, row: u32| {
        let message = std::cell::RefCell::new(String::new());
        case(24, 1, 4, 1, 2).oracle(|tape, x| {
            let (history, slots) = x.history(tape, &["s0"], 1, 4)?;
            let pairs = vec![(slots[0], slots[0]); count];
            let read = depth_attention(tape, history, &pairs, x["query"], row, x["gain"], &PLAIN);
            if let Err(error) = read {
                message.replace(error.to_string());
            }
            Ok(Vec::new())
        });
        message.into_inner()
    };
    assert!(refusal_of(&DepthMix { heads: 3, ..PLAIN }).contains("3 heads do not divide"));
    assert!(refusal_of(&DepthMix { heads: 0, ..PLAIN }).contains("0 heads"));
    let sigmoid = |mix| DepthMix {
        activation: Activation::Sigmoid,
        ..mix
    };
    assert!(refusal_of(&sigmoid(CENTERED)).contains("sigmoid"));
    assert!(refusal_of(&sigmoid(NULL)).contains("sigmoid"));
    assert!(refusal(65, 0).contains("65 sources"));
    assert!(refusal(0, 0).contains("0 sources"));
    assert!(refusal(1, 2).contains("query"));
    assert_eq!(refusal(64, 1), "");
}

/// One token in `f64`, with a chosen gradient of the output: for the invariants and golden numbers of `routing.md`.
#[derive(Clone)]
struct Token {
    keys: Vec<Vec<f64>>,
    /// Empty: values are the keys.
    values: Vec<Vec<f64>>,
    query: Vec<f64>,
    gain: Vec<f64>,
    g: Vec<f64>,
    mix: DepthMix,
}

impl Token {
    /// `mixed`, `weights`, and `grad.` of `query`, `gain`, `k0`, .., `v0`, ..
    fn run(&self) -> BTreeMap<String, Vec<f64>> {
        let dim = self.gain.len() as u32;
        let parameters = Arc::new(Parameters::layout(Vec::new()).expect("nothing twice"));
        let mut tape = Tape::new(parameters);
        let mut inputs: Vec<(String, &Vec<f64>)> =
            vec![("query".into(), &self.query), ("gain".into(), &self.gain)];
        inputs.extend(
            self.keys
                .iter()
                .enumerate()
                .map(|(i, k)| (format!("k{i}"), k)),
        );
        inputs.extend(
            self.values
                .iter()
                .enumerate()
                .map(|(i, v)| (format!("v{i}"), v)),
        );
        let history = tape.history("history", 1, dim);
        let (mut tensors, mut slots) = (BTreeMap::new(), BTreeMap::new());
        for (name, _) in &inputs {
            let tensor = tape.tracked_input(name, [1, dim]);
            tensors.insert(name.clone(), tensor);
            if name.starts_with(['k', 'v']) {
                let fresh = copy(&mut tape, tensor).expect("recorded");
                slots.insert(name.clone(), tape.push(history, fresh).expect("fresh"));
            }
        }
        let values = if self.values.is_empty() { "k" } else { "v" };
        let pairs: Vec<_> = (0..self.keys.len())
            .map(|i| (slots[&format!("k{i}")], slots[&format!("{values}{i}")]))
            .collect();
        let (query, gain) = (tensors["query"], tensors["gain"]);
        let gain = tape.reshape(gain, [dim]);
        let (mixed, weights) =
            depth_attention(&mut tape, history, &pairs, query, 0, gain, &self.mix)
                .expect("recorded");
        tape.output("mixed", mixed);
        tape.output("weights", weights);
        let g = tape.constant("g", [1, dim], self.g.clone());
        tape.backward(&[(mixed, g)]).expect("recorded");

        let mut executor = oracle();
        let plan = tape.finish(&executor.limits()).expect("fits");
        let program = executor.load(&plan, &BTreeMap::new()).expect("loads");
        for (name, values) in inputs {
            let range = executor.range(program, plan.places[&name]);
            executor
                .write(range.buffer, range.offset, Data::F64(values))
                .expect("fits");
        }
        executor.submit(&[Work::Run(program)]).expect("runs");
        let ranges: Vec<_> = plan
            .places
            .values()
            .map(|&place| executor.range(program, place))
            .collect();
        let read = pollster::block_on(executor.read(&ranges).expect("exists")).expect("reads");
        plan.places
            .keys()
            .cloned()
            .zip(read.iter().map(|v| v.to_f64()))
            .collect()
    }

    /// Numbers that are not special.
    fn arbitrary(count: usize, dim: usize) -> Self {
        let wave = |seed: f64| -> Vec<f64> {
            (0..dim)
                .map(|c| (1.7 * seed + 2.3 * c as f64 + 0.4).sin() * 1.5)
                .collect()
        };
        Self {
            keys: (0..count).map(|i| wave(i as f64)).collect(),
            values: (0..count).map(|i| wave(20.5 + i as f64)).collect(),
            query: wave(50.0),
            gain: wave(60.0),
            g: wave(70.0),
            mix: PLAIN,
        }
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

fn golden() -> Token {
    Token {
        keys: vec![
            vec![1.0, 2.0, -1.0, 0.5],
            vec![0.2, -0.3, 0.7, 1.1],
            vec![-2.0, 1.0, 0.0, 3.0],
        ],
        values: Vec::new(),
        query: vec![0.3, -0.2, 0.5, 0.1],
        gain: vec![1.0, 1.1, 0.9, 1.2],
        g: vec![1.0, -2.0, 0.5, 3.0],
        mix: PLAIN,
    }
}

/// Ten decimals are printed in the specification.
fn assert_golden(got: &BTreeMap<String, Vec<f64>>, want: &[(&str, [f64; 4])]) {
    for (name, want) in want {
        for (got, want) in got[*name].iter().zip(want) {
            assert!((got - want).abs() < 6e-11, "{name}: {got} is not {want}");
        }
    }
}

const GOLDEN_WEIGHTS: [f64; 3] = [0.1736139548, 0.6189228937, 0.2074631515];

#[test]
fn golden_numbers_g1_values_are_keys() {
    let got = golden().run();
    assert_close("weights", &got["weights"], &GOLDEN_WEIGHTS, 1e-10);
    assert_golden(
        &got,
        &[
            (
                "mixed",
                [-0.1175277695, 0.3690141931, 0.2596320707, 1.3900116150],
            ),
            (
                "grad.query",
                [-0.9171477276, -1.7774777981, 1.2603125127, 1.3821111709],
            ),
            (
                "grad.gain",
                [-0.2751443183, 0.3231777815, 0.7001736182, 0.1151759309],
            ),
            (
                "grad.k0",
                [-0.1173579840, -0.3091171525, -0.1893442254, 0.3980408208],
            ),
            (
                "grad.k1",
                [0.8373719782, -1.3538592698, 0.5218763446, 1.6502385559],
            ),
            (
                "grad.k2",
                [0.2478816387, -0.4472118009, 0.1813646393, 0.6600969377],
            ),
        ],
    );
}

#[test]
fn golden_numbers_g2_values_are_not_keys() {
    let token = Token {
        values: vec![
            vec![0.5, 0.0, 1.0, -1.0],
            vec![2.0, 1.0, -1.0, 0.3],
            vec![-0.4, 0.6, 0.9, 1.2],
        ],
        ..golden()
    };
    let got = token.run();
    assert_close("weights", &got["weights"], &GOLDEN_WEIGHTS, 1e-10);
    assert_golden(
        &got,
        &[
            (
                "mixed",
                [1.2416675041, 0.7434007846, -0.2585921025, 0.2610186951],
            ),
            (
                "grad.query",
                [-0.7888664319, -0.4843630592, 0.2961104191, 0.6038109276],
            ),
            (
                "grad.gain",
                [-0.2366599296, 0.0880660108, 0.1645057884, 0.0503175773],
            ),
            (
                "grad.k0",
                [-0.1287297260, 0.0168606889, -0.1221728418, -0.0543287603],
            ),
            (
                "grad.k1",
                [-0.0018736454, 0.0009950517, -0.0018218899, 0.0017714160],
            ),
            (
                "grad.k2",
                [0.0530365560, -0.0423645648, 0.1018689867, 0.0494792157],
            ),
            (
                "grad.v0",
                [0.1736139548, -0.3472279097, 0.0868069774, 0.5208418645],
            ),
        ],
    );
}

#[test]
fn the_order_of_sources_does_not_matter() {
    let token = Token::arbitrary(5, 6);
    let mut reversed = token.clone();
    reversed.keys.reverse();
    reversed.values.reverse();
    let (one, two) = (token.run(), reversed.run());
    assert_close("mixed", &one["mixed"], &two["mixed"], 1e-12);
    assert_close("query", &one["grad.query"], &two["grad.query"], 1e-12);
    assert_close("key", &one["grad.k1"], &two["grad.k3"], 1e-12);
}

#[test]
fn the_length_of_a_key_does_not_matter_and_that_of_a_value_does() {
    let token = Token::arbitrary(4, 6);
    let before = token.run();
    let mut longer = token.clone();
    longer.keys[2].iter_mut().for_each(|k| *k *= 50.0);
    assert_close("mixed", &longer.run()["mixed"], &before["mixed"], 2e-6); // up to eps
    let mut longer = token.clone();
    longer.values[2].iter_mut().for_each(|v| *v *= 3.0);
    let share = before["weights"][2] * 2.0;
    let want: Vec<f64> = before["mixed"]
        .iter()
        .zip(&token.values[2])
        .map(|(o, v)| o + share * v)
        .collect();
    assert_close("mixed", &longer.run()["mixed"], &want, 1e-12);
}

#[test]
fn gradients_of_keys_are_orthogonal_to_them_and_logit_gradients_sum_to_zero() {
    let token = Token::arbitrary(5, 6);
    let got = token.run();
    let u: Vec<f64> = token
        .query
        .iter()
        .zip(&token.gain)
        .map(|(q, g)| q * g)
        .collect();
    let mut sum = 0.0;
    for (i, k) in token.keys.iter().enumerate() {
        let dk = &got[&format!("grad.k{i}")];
        let size = dot(dk, dk).sqrt() * dot(k, k).sqrt();
        assert!(dot(dk, k).abs() < 1e-5 * size, "orthogonal up to eps");
        // dk = dz * r * (u - (r * z / d) * k), projected on u.
        let r = 1.0 / (dot(k, k) / 6.0 + 1e-6).sqrt();
        let along = dot(&u, &u) - r * r * dot(&u, k) / 6.0 * dot(k, &u);
        sum += dot(dk, &u) / (r * along);
    }
    assert!(sum.abs() < 1e-12);
}

#[test]
fn gradients_of_values_sum_to_the_gradient_or_to_zero_if_centered() {
    for (mix, share) in [(PLAIN, 1.0), (CENTERED, 0.0)] {
        let token = Token {
            mix,
            ..Token::arbitrary(5, 6)
        };
        let got = token.run();
        for (c, g) in token.g.iter().enumerate() {
            let sum: f64 = (0..5).map(|i| got[&format!("grad.v{i}")][c]).sum();
            assert!((sum - share * g).abs() < 1e-12);
        }
    }
}

#[test]
fn reads_stay_in_the_hull_of_their_values() {
    let token = Token::arbitrary(5, 6);
    for (c, mixed) in token.run()["mixed"].iter().enumerate() {
        let values = token.values.iter().map(|v| v[c]);
        assert!(*mixed <= values.clone().fold(f64::MIN, f64::max));
        assert!(*mixed >= values.fold(f64::MAX, f64::min));
    }
}

#[test]
fn a_null_source_is_a_source_of_value_zero() {
    // A key of zeros has logit 0 whatever the query.
    let mut with_zero = Token::arbitrary(4, 6);
    let mut null = with_zero.clone();
    null.mix.null_logit = Some(0.0);
    with_zero.keys.push(vec![0.0; 6]);
    with_zero.values.push(vec![0.0; 6]);
    let (one, two) = (null.run(), with_zero.run());
    for name in [
        "mixed",
        "weights",
        "grad.query",
        "grad.gain",
        "grad.k1",
        "grad.v2",
    ] {
        assert_close(name, &one[name], &two[name], 1e-12);
    }
}
