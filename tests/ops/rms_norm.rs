use braid_engine::ops::rms_norm::rms_norm;
use braid_tests::{Case, F32, assert_close};

#[test]
fn agrees_everywhere() {
    for (seed, dim) in [1, 63, 64, 65, 96].into_iter().enumerate() {
        for rows in [1, 7, 70] {
            let case = Case::seeded(seed as u64)
                .tracked("x", [rows, dim])
                .parameter("gain", [dim]);
            case.check(F32, |tape, x| {
                Ok(vec![rms_norm(tape, x["x"], x["gain"], 1e-6)?])
            });
        }
    }
}

#[test]
fn many_rows_agree() {
    for (seed, dim) in [63, 96].into_iter().enumerate() {
        let case = Case::seeded(seed as u64)
            .tracked("x", [700, dim])
            .parameter("gain", [dim]);
        case.check(F32, |tape, x| {
            Ok(vec![rms_norm(tape, x["x"], x["gain"], 1e-6)?])
        });
    }
}

#[test]
fn a_row_of_zeros_stays_zero() {
    let case = Case::seeded(1)
        .tracked("x", [1, 5])
        .values(&[0.0; 5])
        .parameter("gain", [5]);
    let outcome = case.oracle(|tape, x| Ok(vec![rms_norm(tape, x["x"], x["gain"], 1e-6)?]));
    assert_close("output", &outcome["out.0"], &[0.0; 5], F32);
}
