use braid_engine::ops::rope::{rope, rope_tables};
use braid_tests::{Case, F32, assert_close};

#[test]
fn agrees_everywhere() {
    for (seed, shape) in [
        [1, 1, 1, 2],
        [1, 7, 3, 2],
        [2, 5, 1, 6],
        [3, 64, 2, 64],
        [2, 70, 4, 32],
    ]
    .into_iter()
    .enumerate()
    {
        let case = Case::seeded(seed as u64).tracked("x", shape);
        case.check(F32, |tape, x| {
            let tables = rope_tables(tape, shape[1], shape[3], 10_000.0);
            Ok(vec![rope(tape, x["x"], &tables)?])
        });
    }
}

#[test]
fn pairs_are_half_a_head_apart_and_turn_by_position() {
    // One batch, three positions, one head of four channels; theta 100, so that pair 1 turns 10 times slower.
    let x = [1.0, 0.0, 0.0, 2.0].repeat(3);
    let case = Case::seeded(1).tracked("x", [1, 3, 1, 4]).values(&x);
    let outcome = case.oracle(|tape, x| {
        let tables = rope_tables(tape, 3, 4, 100.0);
        Ok(vec![rope(tape, x["x"], &tables)?])
    });
    let want: Vec<f64> = (0..3)
        .map(f64::from)
        .flat_map(|t| {
            [
                t.cos(),
                -2.0 * (t / 10.0).sin(),
                t.sin(),
                2.0 * (t / 10.0).cos(),
            ]
        })
        .collect();
    assert_close("rotated", &outcome["out.0"], &want, 1e-15);
}

#[test]
fn lengths_are_kept() {
    let case = Case::seeded(1).tracked("x", [2, 9, 2, 8]);
    let outcome = case.oracle(|tape, x| {
        let tables = rope_tables(tape, 9, 8, 10_000.0);
        Ok(vec![rope(tape, x["x"], &tables)?])
    });
    let length = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>();
    let pairs = outcome["out.0"].chunks(8).zip(case.input("x").chunks(8));
    for (turned, x) in pairs {
        assert!((length(turned) - length(x)).abs() < 1e-12);
    }
}
