use braid_engine::ops::inverse_rms::inverse_rms;
use braid_tests::{Case, F32, assert_close};

#[test]
fn agrees_everywhere() {
    for (seed, dim) in [1, 63, 64, 65, 96].into_iter().enumerate() {
        for rows in [1, 7, 70] {
            // A single channel is scaled by its inverse: keep it away from zero, where that has a pole.
            let (spread, mean) = if dim == 1 { (0.3, 1.5) } else { (1.0, 0.0) };
            let case = Case::seeded(seed as u64)
                .tracked("x", [rows, dim])
                .scaled(spread, mean);
            case.check(F32, |tape, x| Ok(vec![inverse_rms(tape, x["x"], 1e-6)?]));
        }
    }
}

#[test]
fn eps_bounds_the_factor_of_a_row_of_zeros() {
    let case = Case::seeded(1)
        .tracked("x", [2, 4])
        .values(&[0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0]);
    let outcome = case.oracle(|tape, x| Ok(vec![inverse_rms(tape, x["x"], 0.25)?]));
    assert_close(
        "r",
        &outcome["out.0"],
        &[2.0, 7.75_f64.sqrt().recip()],
        1e-15,
    );
}
