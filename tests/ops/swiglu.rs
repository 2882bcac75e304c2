use braid_engine::ops::swiglu::swiglu;
use braid_tests::{Case, F32, assert_close};

#[test]
fn agrees_everywhere() {
    for (seed, dim) in [1, 63, 64, 65, 96].into_iter().enumerate() {
        for rows in [1, 7, 70, 700] {
            let case = Case::seeded(seed as u64)
                .tracked("gate", [rows, dim])
                .scaled(3.0, 0.0)
                .tracked("up", [rows, dim]);
            case.check(F32, |tape, x| Ok(vec![swiglu(tape, x["gate"], x["up"])?]));
        }
    }
}

#[test]
fn one_side_may_be_fixed() {
    for fixed in ["gate", "up"] {
        let other = if fixed == "up" { "gate" } else { "up" };
        let case = Case::seeded(1).plain(fixed, [7, 5]).tracked(other, [7, 5]);
        case.check(F32, |tape, x| Ok(vec![swiglu(tape, x["gate"], x["up"])?]));
    }
}

#[test]
fn a_wide_open_gate_passes_and_a_shut_one_stops() {
    let case = Case::seeded(1)
        .tracked("gate", [4])
        .values(&[300.0, 0.0, -300.0, -1e4])
        .tracked("up", [4])
        .values(&[2.0; 4]);
    case.check(F32, |tape, x| Ok(vec![swiglu(tape, x["gate"], x["up"])?]));
    let outcome = case.oracle(|tape, x| Ok(vec![swiglu(tape, x["gate"], x["up"])?]));
    assert_close("output", &outcome["out.0"], &[600.0, 0.0, 0.0, 0.0], F32);
}
