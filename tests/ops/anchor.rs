//! The two measures of a device compute what they say.

use braid_engine::cpu::fast::gemm;
use braid_engine::ops::anchor::{copy, multiply_add};
use braid_engine::tape::Tape;
use braid_tests::{Case, EXACT, F32, Inputs, compare, executors};

#[test]
fn a_copy_is_a_copy() {
    for len in [4, 252, 256, 1000] {
        let case = Case::seeded(1).plain("x", [len]);
        let record = |tape: &mut Tape, x: &Inputs| {
            let y = copy(tape, x["x"])?;
            tape.output("y", y);
            Ok(vec![])
        };
        let oracle = case.oracle(record);
        assert_eq!(oracle["y"], case.input("x"));
        for (name, executor) in executors() {
            compare(name, &case.run_on(executor, record), &oracle, EXACT);
        }
    }
}

#[test]
fn the_chains_of_multiply_add_end_where_they_should() {
    for rounds in [0, 1, 3, 100] {
        let case = Case::seeded(2).plain("x", [260]);
        let record = |tape: &mut Tape, x: &Inputs| {
            let y = multiply_add(tape, x["x"], rounds)?;
            tape.output("y", y);
            Ok(vec![])
        };
        let oracle = case.oracle(record);
        // Each chain k x tends to x / 2 and halves its distance in a round; the distances sum to (36 - 4) x.
        let far = 32.0 * 0.5_f64.powi(rounds as i32);
        for (y, x) in oracle["y"].iter().zip(case.input("x")) {
            assert!(
                (y - x * (4.0 + far)).abs() <= 1e-14 * x.abs() * 40.0,
                "{rounds} rounds: {y}"
            );
        }
        for (name, executor) in executors() {
            compare(name, &case.run_on(executor, record), &oracle, F32);
        }
    }
}

#[test]
fn whole_vectors_only() {
    let refused = std::panic::catch_unwind(|| {
        let case = Case::seeded(3).plain("x", [6]);
        case.oracle(|tape, x| copy(tape, x["x"]).map(|_| vec![]))
    });
    assert!(refused.is_err());
}

#[test]
fn the_anchor_of_the_cpu_is_a_matrix_product() {
    for size in [1, 7, 64] {
        let number = |at: usize| (at * 7 % 5) as f32 - 2.0;
        let a: Vec<f32> = (0..size * size).map(number).collect();
        let b: Vec<f32> = (0..size * size).map(|at| number(at + 3)).collect();
        let mut c = vec![f32::NAN; size * size];
        gemm(size, &a, &b, &mut c);
        for (at, &got) in c.iter().enumerate() {
            let (i, j) = (at / size, at % size);
            // Small integers: exact in any order.
            let want: f32 = (0..size).map(|l| a[i * size + l] * b[l * size + j]).sum();
            assert_eq!(got, want, "{size} cubed, element {i}, {j}");
        }
    }
}
