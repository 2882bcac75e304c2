use std::sync::Arc;

use braid_engine::Result;
use braid_engine::ops::expert_rows::{combine, gather};
use braid_engine::ops::expert_sort::expert_sort;
use braid_engine::ops::grouped_matmul::grouped_linear;
use braid_engine::params::{Init, ParamSpec, Parameters};
use braid_engine::tape::{Tape, Tensor};
use braid_tests::{Case, EXACT, F32, F32_LONG, Inputs, assert_close};

fn names(experts: u32) -> Vec<String> {
    (0..experts).map(|expert| format!("w{expert}")).collect()
}

fn case(seed: u64, [tokens, inputs, outputs]: [u32; 3], top_k: u32, experts: u32) -> Case {
    let case = Case::seeded(seed)
        .tracked("x", [tokens, inputs])
        .tracked("gates", [tokens, experts])
        .ints("chosen", [tokens, top_k], experts);
    let weights = names(experts).into_iter();
    weights.fold(case, |case, name| case.parameter(&name, [outputs, inputs]))
}

fn record(tape: &mut Tape, x: &Inputs, experts: u32) -> Result<Vec<Tensor>> {
    let weights: Vec<Tensor> = names(experts).iter().map(|name| x[name.as_str()]).collect();
    let sorted = expert_sort(tape, x["chosen"], experts)?;
    let rows = gather(tape, x["x"], &sorted)?;
    let y = grouped_linear(tape, rows, &weights, &sorted)?;
    Ok(vec![combine(tape, y, x["gates"], &sorted)?])
}

#[test]
fn agrees_everywhere() {
    for (seed, shape) in [
        [1, 1, 1],
        [7, 5, 3],
        [70, 8, 12],
        [33, 64, 20],
        [40, 65, 63],
        [64, 12, 7],
    ]
    .into_iter()
    .enumerate()
    {
        for (top_k, experts) in [(1, 1), (2, 3), (3, 8)] {
            let case = case(seed as u64, shape, top_k, experts);
            case.check(F32, |tape, x| record(tape, x, experts));
        }
    }
}

#[test]
fn one_expert_may_have_many_tiles() {
    for (rows, only) in [(300, 0.0), (1500, 2.0)] {
        let case = Case::seeded(2)
            .tracked("x", [rows, 16])
            .tracked("gates", [rows, 3])
            .ints("chosen", [rows, 1], 3)
            .values(&vec![only; rows as usize]);
        let weights = names(3).into_iter();
        let case = weights.fold(case, |case, name| case.parameter(&name, [24, 16]));
        case.check(F32_LONG, |tape, x| record(tape, x, 3));
    }
}

#[test]
fn experts_without_rows_have_a_gradient_of_zero() {
    let case = Case::seeded(1)
        .tracked("x", [20, 8])
        .tracked("gates", [20, 3])
        .ints("chosen", [20, 1], 3)
        .values(&[1.0; 20]);
    let weights = names(3).into_iter();
    let case = weights.fold(case, |case, name| case.parameter(&name, [4, 8]));
    case.check(F32, |tape, x| record(tape, x, 3));
    let outcome = case.oracle(|tape, x| record(tape, x, 3));
    for idle in ["grad.w0", "grad.w2"] {
        assert_close(idle, &outcome[idle], &[0.0; 32], EXACT);
    }
    assert!(outcome["grad.w1"].iter().any(|&v| v != 0.0));
}

#[test]
fn weights_that_do_not_lie_together_are_refused() {
    let spec = |name: &str| ParamSpec::base(name, [4, 8], Init::Constant(0.0), true);
    let specs = ["w0", "other", "w1"].map(spec).to_vec();
    let mut tape = Tape::new(Arc::new(Parameters::layout(specs).expect("names differ")));
    let chosen = tape.input_ints("chosen", [6, 1]);
    let sorted = expert_sort(&mut tape, chosen, 2).expect("records");
    let x = tape.tracked_input("x", [6, 8]);
    let rows = gather(&mut tape, x, &sorted).expect("records");
    let weights = ["w0", "w1"].map(|name| tape.parameter(name).expect("exists"));
    let error = grouped_linear(&mut tape, rows, &weights, &sorted).expect_err("refused");
    assert!(error.to_string().contains("one after the other"), "{error}");
    let error = grouped_linear(&mut tape, rows, &weights[..1], &sorted).expect_err("refused");
    assert!(error.to_string().contains("needs 2 weights"), "{error}");
}
