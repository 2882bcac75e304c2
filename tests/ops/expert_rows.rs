use std::sync::Arc;

use braid_engine::ops::expert_rows::{combine, gather};
use braid_engine::ops::expert_sort::expert_sort;
use braid_engine::params::Parameters;
use braid_engine::tape::Tape;
use braid_tests::{Case, F32, assert_close};

fn case(seed: u64, tokens: u32, dim: u32, top_k: u32, experts: u32) -> Case {
    Case::seeded(seed)
        .tracked("x", [tokens, dim])
        .tracked("gates", [tokens, experts])
        .ints("chosen", [tokens, top_k], experts)
}

/// Through the rows and back: every choice adds its gate times the token.
#[test]
fn agree_everywhere() {
    for (seed, dim) in [1, 63, 64, 65].into_iter().enumerate() {
        for (tokens, top_k, experts) in [(1, 1, 1), (7, 2, 3), (70, 3, 9), (33, 1, 2)] {
            case(seed as u64, tokens, dim, top_k, experts).check(F32, |tape, x| {
                let sorted = expert_sort(tape, x["chosen"], experts)?;
                let rows = gather(tape, x["x"], &sorted)?;
                Ok(vec![combine(tape, rows, x["gates"], &sorted)?])
            });
        }
    }
}

#[test]
fn slots_are_added_with_their_gates() {
    let case = case(1, 2, 1, 2, 3).values(&[0.0, 2.0, 1.0, 1.0]);
    let outcome = case.oracle(|tape, x| {
        let sorted = expert_sort(tape, x["chosen"], 3)?;
        let rows = gather(tape, x["x"], &sorted)?;
        Ok(vec![combine(tape, rows, x["gates"], &sorted)?])
    });
    let (x, gates) = (case.input("x"), case.input("gates"));
    let want = [x[0] * (gates[0] + gates[2]), x[1] * 2.0 * gates[4]];
    assert_close("sum", &outcome["out.0"], &want, 1e-15);
}

#[test]
fn shapes_that_were_not_sorted_are_refused() {
    let mut tape = Tape::new(Arc::new(Parameters::layout(vec![]).expect("empty")));
    let chosen = tape.input_ints("chosen", [6, 2]);
    let sorted = expert_sort(&mut tape, chosen, 3).expect("records");
    let (x, gates) = (
        tape.tracked_input("x", [5, 4]),
        tape.tracked_input("gates", [6, 3]),
    );
    let error = gather(&mut tape, x, &sorted)
        .expect_err("refused")
        .to_string();
    assert!(error.contains("tokens sorted"), "{error}");
    assert!(combine(&mut tape, x, gates, &sorted).is_err());
}
