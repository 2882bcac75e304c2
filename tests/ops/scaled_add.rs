use braid_engine::ops::copy::copy;
use braid_engine::ops::scaled_add::scaled_add;
use braid_tests::{Case, F32, F32_LONG, assert_close};

fn case(seed: u64, rows: u32, dim: u32) -> Case {
    Case::seeded(seed)
        .tracked("h", [rows, dim])
        .tracked("o", [rows, dim])
        .parameter("scale", [1])
}

#[test]
fn agrees_everywhere() {
    for (seed, dim) in [1, 63, 64, 65, 96].into_iter().enumerate() {
        for rows in [1, 7, 70] {
            case(seed as u64, rows, dim).check(F32, |tape, x| {
                Ok(vec![scaled_add(tape, x["h"], x["o"], x["scale"])?])
            });
        }
    }
}

#[test]
fn a_long_sum_for_the_scale_agrees() {
    // 20,000 products cancel to about their root.
    case(5, 200, 100).check(F32_LONG, |tape, x| {
        Ok(vec![scaled_add(tape, x["h"], x["o"], x["scale"])?])
    });
}

#[test]
fn both_inputs_may_be_the_same_tensor() {
    case(6, 7, 33).check(F32, |tape, x| {
        Ok(vec![scaled_add(tape, x["h"], x["h"], x["scale"])?])
    });
}

#[test]
fn a_scale_of_zero_changes_nothing_but_gets_a_gradient() {
    let case = Case::seeded(7)
        .tracked("h", [3, 5])
        .tracked("o", [3, 5])
        .parameter("scale", [1])
        .values(&[0.0]);
    let outcome = case.oracle(|tape, x| Ok(vec![scaled_add(tape, x["h"], x["o"], x["scale"])?]));
    assert_close("x", &outcome["out.0"], case.input("h"), 1e-15);
    assert_close("gradient of o", &outcome["grad.o"], &[0.0; 15], 1e-15);
    assert!(outcome["grad.scale"][0].abs() > 1e-3);
}

#[test]
fn wrong_shapes_are_refused_by_name() {
    case(8, 2, 3).oracle(|tape, x| {
        let error = scaled_add(tape, x["h"], x["scale"], x["scale"]);
        let message = error.expect_err("o is one number").to_string();
        assert_eq!(message, "scaled_add: o has shape [1], expected [2, 3]");
        let error = scaled_add(tape, x["h"], x["o"], x["h"]);
        let message = error.expect_err("scale is six numbers").to_string();
        assert_eq!(message, "scaled_add: scale has shape [2, 3], expected [1]");
        Ok(vec![copy(tape, x["h"])?])
    });
}
