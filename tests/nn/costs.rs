//! The bytes and operations that measurements are compared with, against counts by hand.

use std::sync::Arc;

use braid_engine::bench::sizes::SIZES;
use braid_engine::bench::{Cost, OpCase, call_cost, cases};
use braid_engine::models::config::ResidualConfig;
use braid_engine::models::{decoder, plans};
use braid_engine::ops::attention::attention;
use braid_engine::ops::copy::copy;
use braid_engine::ops::depth_attention::{DepthMix, depth_attention};
use braid_engine::ops::matmul::linear;
use braid_engine::params::{Init, ParamSpec, Parameters};
use braid_engine::plan::{Pass, Plan};
use braid_engine::tape::{Tape, Tensor};
use braid_tests::oracle;

/// The ops of a tape with these parameters, and of the gradient of its result.
fn recorded(
    parameters: &[(&str, [u32; 2])],
    record: impl Fn(&mut Tape) -> braid_engine::Result<Tensor>,
) -> Vec<OpCase> {
    let spec =
        |&(name, shape): &(&str, [u32; 2])| ParamSpec::routing(name, shape, Init::Constant(0.0));
    let parameters =
        Parameters::layout(parameters.iter().map(spec).collect()).expect("names differ");
    let mut tape = Tape::new(Arc::new(parameters)).sharing(false);
    let y = record(&mut tape).expect("records");
    let seed = tape.input("seed", y.shape);
    tape.output("y", y);
    tape.backward(&[(y, seed)]).expect("records");
    cases(&tape.finish(&oracle().limits()).expect("fits"))
}

fn find(cases: &[OpCase], op: &str, pass: Pass) -> OpCase {
    let found: Vec<_> = cases
        .iter()
        .filter(|case| case.op == op && case.pass == pass)
        .collect();
    assert_eq!(found.len(), 1, "{op} {pass:?}: {cases:?}");
    found[0].clone()
}

#[test]
fn a_linear_layer_moves_its_matrices_once() {
    let (rows, from, to) = (10, 8, 12);
    let cases = recorded(&[("w", [to, from])], |tape| {
        let x = tape.tracked_input("x", [rows, from]);
        let w = tape.parameter("w")?;
        linear(tape, x, w)
    });
    let (x, w, y) = (rows * from, to * from, rows * to);
    let product = u64::from(2 * rows * from * to);
    let forward = find(&cases, "linear", Pass::Forward);
    let want = Cost {
        bytes: u64::from(4 * (x + w + y)),
        operations: product,
    };
    assert_eq!((forward.cost, forward.calls()), (want, 1));
    // The gradient of y and both inputs are read, that of x is stored, that of w is added to.
    let backward = find(&cases, "linear", Pass::Backward);
    let want = Cost {
        bytes: u64::from(4 * (y + x + w + x + 2 * w)),
        operations: 2 * product,
    };
    assert_eq!((backward.cost, backward.calls()), (want, 2));
}

#[test]
fn partial_sums_that_only_an_op_sees_cost_no_bytes() {
    let (rows, from, to) = (2500, 4, 8);
    let cases = recorded(&[("w", [to, from])], |tape| {
        let x = tape.tracked_input("x", [rows, from]);
        let w = tape.parameter("w")?;
        linear(tape, x, w)
    });
    let (x, w, y) = (rows * from, to * from, rows * to);
    let backward = find(&cases, "linear", Pass::Backward);
    assert_eq!(backward.calls(), 3, "two products and the sum of the slabs");
    assert_eq!(backward.cost.bytes, u64::from(4 * (y + x + w + x + 2 * w)));
}

#[test]
fn attention_counts_the_pairs_below_the_diagonal() {
    let (batch, tokens, heads, dim) = (2, 5, 3, 4);
    let cases = recorded(&[], |tape| {
        let shape = [batch, tokens, heads, dim];
        let [q, k, v] = ["q", "k", "v"].map(|name| tape.tracked_input(name, shape));
        attention(tape, q, k, v)
    });
    let pairs = u64::from(batch * heads * (1 + 2 + 3 + 4 + 5));
    let forward = find(&cases, "attention", Pass::Forward);
    assert_eq!(forward.cost.operations, pairs * 2 * 2 * u64::from(dim));
    let backward = find(&cases, "attention", Pass::Backward);
    assert_eq!(
        backward.cost.operations,
        pairs * (3 + 4) * 2 * u64::from(dim)
    );
}

#[test]
fn depth_attention_reads_its_sources_and_not_the_whole_history() {
    let (rows, dim, sources) = (6, 64, 3);
    let cases = recorded(&[("query", [1, dim]), ("gain", [1, dim])], |tape| {
        let history = tape.history("history", rows, dim);
        let mut slots = Vec::new();
        // One slot more than is read.
        for number in 0..=sources {
            let x = tape.tracked_input(&format!("x{number}"), [rows, dim]);
            let x = copy(tape, x)?;
            slots.push(tape.push(history, x)?);
        }
        let pairs: Vec<_> = slots[1..].iter().map(|&slot| (slot, slot)).collect();
        let (query, gain) = (tape.parameter("query")?, tape.parameter("gain")?);
        let mix = DepthMix::softmax(1e-6);
        let (mixed, _) = depth_attention(tape, history, &pairs, query, 0, gain, &mix)?;
        copy(tape, mixed)
    });
    let (source, weights) = (rows * dim, rows * sources);
    let forward = find(&cases, "depth_attention", Pass::Forward);
    // Query and gain; weights, and two numbers for each score, are kept for the gradient.
    let want = 4 * ((sources + 1) * source + 2 * dim + 3 * weights);
    assert_eq!(forward.cost.bytes, u64::from(want));
    let backward = find(&cases, "depth_attention", Pass::Backward);
    // Sources and the gradient of the mix are read, the sources' gradients stored; those of query and gain are added to.
    let want = 4 * ((2 * sources + 1) * source + 2 * dim + 3 * weights + 4 * dim);
    assert_eq!(backward.cost.bytes, u64::from(want));
}

#[test]
fn every_call_of_a_model_belongs_to_one_op_and_every_op_costs_something() {
    for kind in ResidualConfig::KINDS {
        let residual = ResidualConfig::of_kind(kind).expect("a kind");
        let plan = training(residual, false);
        let all = cases(&plan);
        let calls: usize = all.iter().map(|case| case.count * case.calls()).sum();
        assert_eq!(calls, plan.steps.len(), "{kind}");
        for case in &all {
            assert!(
                case.cost.bytes > 0 && !case.size.is_empty(),
                "{kind}: {case:?}"
            );
            let apart: u64 = plan.steps[case.first..=case.last]
                .iter()
                .map(|step| call_cost(step).bytes)
                .sum();
            assert!(
                case.cost.bytes <= apart,
                "{kind}: {case:?} needs more than its calls, {apart}"
            );
        }
        let shares = training(ResidualConfig::of_kind(kind).expect("a kind"), true);
        assert_eq!(plan.memory.planned, plan.memory.unshared, "{kind}");
        assert!(shares.memory.planned < plan.memory.planned, "{kind}");
    }
}

/// The forward and backward pass of a small model.
fn training(residual: ResidualConfig, sharing: bool) -> Plan {
    let size = SIZES[0];
    let model = size.model(residual);
    let parameters = Arc::new(decoder::parameters(&model).expect("valid"));
    let how = plans::Training {
        batch: size.batch(),
        accumulate: 1,
        checkpoint: false,
        watch: false,
    };
    let record = if sharing {
        plans::training
    } else {
        plans::training_apart
    };
    let recorded = record(&model, &parameters, &how, &oracle().limits());
    recorded.expect("records").plan
}
