use braid_engine::Result;
use braid_engine::ops::copy::copy;
use braid_engine::ops::depth_attention::{DepthMix, depth_attention, depth_attention_open};
use braid_engine::ops::depth_merge::{OpenMix, depth_merge};
use braid_engine::tape::{Tape, Tensor};
use braid_tests::{Case, F32, Inputs, assert_close, executors};

const MIX: DepthMix = DepthMix::softmax(1e-6);

/// `finished` sources and a partial, the last one.
fn case(seed: u64, rows: u32, dim: u32, finished: usize) -> Case {
    let mut case = Case::seeded(seed);
    for i in 0..=finished {
        case = case.tracked(&format!("s{i}"), [rows, dim]);
    }
    case.parameter("query", [1, dim])
        .scaled(0.5, 0.0)
        .parameter("gain", [dim])
        .scaled(0.1, 1.0)
}

/// The mix of all sources, in one step or in two.
fn mix(
    tape: &mut Tape,
    x: &Inputs,
    [rows, dim]: [u32; 2],
    finished: usize,
    two_phases: bool,
) -> Result<Vec<Tensor>> {
    let names: Vec<String> = (0..=finished).map(|i| format!("s{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (history, slots) = x.history(tape, &names, rows, dim)?;
    let pairs: Vec<_> = slots.iter().map(|&slot| (slot, slot)).collect();
    let (query, gain) = (x["query"], x["gain"]);
    let (mixed, weights) = if two_phases {
        let (mixed, weights, log_sum) =
            depth_attention_open(tape, history, &pairs[..finished], query, 0, gain, &MIX)?;
        let open = OpenMix {
            mixed,
            weights,
            log_sum,
        };
        depth_merge(tape, history, open, slots[finished], query, gain, &MIX)?
    } else {
        depth_attention(tape, history, &pairs, query, 0, gain, &MIX)?
    };
    tape.output("weights", weights);
    Ok(vec![mixed])
}

const SHAPES: [(u32, u32, usize); 6] = [
    (1, 1, 1),
    (7, 5, 1),
    (7, 63, 4),
    (70, 64, 2),
    (7, 65, 3),
    (3, 12, 63),
];

#[test]
fn agrees_everywhere() {
    for (seed, (rows, dim, finished)) in SHAPES.into_iter().enumerate() {
        case(seed as u64, rows, dim, finished)
            .check(F32, |tape, x| mix(tape, x, [rows, dim], finished, true));
    }
}

/// I7: outputs, weights and all gradients.
#[test]
fn two_phases_are_the_single_pass() {
    for (seed, (rows, dim, finished)) in SHAPES.into_iter().enumerate() {
        let case = case(seed as u64, rows, dim, finished);
        let run =
            |two_phases| case.oracle(|tape, x| mix(tape, x, [rows, dim], finished, two_phases));
        let (one, two) = (run(false), run(true));
        for (name, want) in &one {
            assert_close(name, &two[name], want, 1e-10);
        }
        assert!(one.len() >= 5 + finished);
    }
}

#[test]
fn a_sum_that_is_far_larger_or_smaller_stays_finite() {
    let mut case = Case::seeded(9);
    for i in 0..3 {
        case = case.tracked(&format!("s{i}"), [7, 12]);
    }
    let case = case
        .parameter("query", [1, 12])
        .scaled(1000.0, 0.0)
        .parameter("gain", [12]);
    for (name, executor) in executors() {
        let outcome = case.run_on(executor, |tape, x| mix(tape, x, [7, 12], 2, true));
        assert!(outcome.values().flatten().all(|v| v.is_finite()), "{name}");
        for weights in outcome["weights"].chunks(3) {
            assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{name}");
        }
    }
}

#[test]
fn wrong_shapes_are_refused_by_name() {
    case(8, 2, 3, 1).oracle(|tape, x| {
        let (history, slots) = x.history(tape, &["s0", "s1"], 2, 3)?;
        let open = OpenMix {
            mixed: x["s0"],
            weights: x["gain"],
            log_sum: x["gain"],
        };
        let merge = |tape: &mut Tape, open, query| {
            let merged = depth_merge(tape, history, open, slots[1], query, x["gain"], &MIX);
            merged.expect_err("refused").to_string()
        };
        assert!(merge(tape, open, x["query"]).contains("depth_merge: weights has shape [3]"));
        let open = OpenMix {
            mixed: x["gain"],
            ..open
        };
        assert!(merge(tape, open, x["query"]).contains("depth_merge: mix has shape [3]"));
        Ok(vec![copy(tape, x["s0"])?])
    });
}
