//! T-mHC-2, 3, 4, 6 and 7 of the notes on residual mechanisms, with the golden vectors G1 and G2.

use braid_engine::Result;
use braid_engine::ops::copy::copy;
use braid_engine::ops::mhc_gates::{Projection, mhc_gates};
use braid_engine::tape::{Tape, Tensor};
use braid_tests::vectors::w;
use braid_tests::{Case, EXACT, F32, Inputs, Outcome, assert_close};

const TWENTY: Projection = Projection::Sinkhorn(20);

fn record(
    tape: &mut Tape,
    x: &Inputs,
    streams: u32,
    projection: Projection,
) -> Result<Vec<Tensor>> {
    let gates = mhc_gates(tape, x["raw"], streams, projection)?;
    Ok(vec![gates.pre, gates.post, gates.mix])
}

fn case(seed: u64, rows: u32, streams: u32) -> Case {
    Case::seeded(seed).tracked("raw", [rows, streams * (streams + 2)])
}

#[test]
fn agrees_everywhere() {
    for (seed, streams) in (1..=8).enumerate() {
        for (rows, iterations) in [(1, 1), (7, 3), (70, 20)] {
            let case = case(seed as u64, rows, streams);
            case.check(F32, |tape, x| {
                record(tape, x, streams, Projection::Sinkhorn(iterations))
            });
        }
    }
    for rows in [1, 7, 70] {
        case(9, rows, 2).check(F32, |tape, x| record(tape, x, 2, Projection::Exact2));
    }
}

#[test]
fn each_gate_may_be_unused() {
    for projection in [TWENTY, Projection::Exact2] {
        for used in 0..3 {
            case(10, 7, 2).check(F32, |tape, x| {
                Ok(vec![record(tape, x, 2, projection)?[used]])
            });
        }
    }
}

#[test]
fn gates_without_a_gradient_are_computed_all_the_same() {
    let case = Case::seeded(11).plain("raw", [7, 8]).tracked("y", [7, 4]);
    case.check(F32, |tape, x| {
        let mix = record(tape, x, 2, TWENTY)?[2];
        Ok(vec![braid_engine::ops::add::add(tape, mix, x["y"])?])
    });
}

/// The mixing matrix of one row of raw coefficients, and the gradient of those given that of the matrix.
fn project(matrix: &[f64], gradient: &[f64], projection: Projection) -> (Vec<f64>, Vec<f64>) {
    use braid_engine::ops::add::add;
    use braid_engine::ops::matmul::linear;
    let n = matrix.len().isqrt();
    let mut raw = vec![0.0; 2 * n];
    raw.extend(matrix);
    let case = Case::seeded(12)
        .tracked("raw", [1, raw.len() as u32])
        .values(&raw)
        .parameter("gradient", [1, gradient.len() as u32])
        .values(gradient)
        .tracked("seed", [1])
        .values(&[0.0]);
    let outcome = case.oracle(|tape, x| {
        let mix = record(tape, x, n as u32, projection)?[2];
        tape.output("mix", mix);
        let along = linear(tape, mix, x["gradient"])?;
        Ok(vec![add(tape, along, x["seed"])?])
    });
    let seed = outcome["grad.seed"][0];
    let slope = outcome["grad.raw"][2 * n..].iter().map(|v| v / seed);
    (outcome["mix"].clone(), slope.collect())
}

fn near(what: &str, got: &[f64], want: &[f64]) {
    for (a, b) in got.iter().zip(want) {
        assert!((a - b).abs() <= 6e-8, "{what}: {got:?}, expected {want:?}");
    }
    assert_eq!(got.len(), want.len());
}

#[test]
fn g1_four_streams() {
    let logits: Vec<f64> = w(1, 16).iter().map(|v| 2.0 * v).collect();
    let (mix, slope) = project(&logits, &w(2, 16), TWENTY);
    let want = [
        0.4561715, 0.1331819, 0.2984213, 0.1122253, 0.1647234, 0.5745467, 0.1990515, 0.0616784,
        0.2057483, 0.2118388, 0.2285256, 0.3538873, 0.1733569, 0.0804327, 0.2740016, 0.4722089,
    ];
    near("R", &mix, &want);
    let want = [
        0.0247839, 0.0514978, -0.0626537, -0.0136280, 0.0138757, -0.0171807, -0.0739951, 0.0773002,
        -0.0719531, -0.0659800, 0.0365592, 0.1013739, 0.0332936, 0.0316629, 0.1000896, -0.1650460,
    ];
    near("dL", &slope, &want);
    for j in 0..4 {
        let column: f64 = (0..4).map(|i| slope[4 * i + j]).sum();
        assert!(column.abs() < 1e-15, "column {j} of dL sums to {column}");
    }
}

#[test]
fn g2_two_streams() {
    let gradient = w(3, 4);
    let run = |matrix: [f64; 4], projection| project(&matrix, &gradient, projection);

    let gentle = [1.0, -0.5, 0.3, 0.8];
    let (mix, _) = run(gentle, Projection::Sinkhorn(1));
    near("R", &mix, &[0.7572796, 0.2427204, 0.2968846, 0.7031154]);
    for projection in [TWENTY, Projection::Exact2] {
        let (mix, slope) = run(gentle, projection);
        near("R", &mix, &[0.7310586, 0.2689414, 0.2689414, 0.7310586]);
        near(
            "dL",
            &slope,
            &[-0.0325285, 0.0325285, 0.0325285, -0.0325285],
        );
    }

    let steep = [2.0, -3.0, -1.0, 4.0];
    let (mix, slope) = run(steep, TWENTY);
    near("R", &mix, &[0.9974525, 0.0025475, 0.0174652, 0.9825348]);
    near(
        "dL",
        &slope,
        &[0.0017036, 0.0015963, -0.0017036, -0.0015963],
    );
    let (mix, _) = run(steep, Projection::Sinkhorn(100));
    let (more, _) = run(steep, Projection::Sinkhorn(200));
    near("R", &more, &[0.9933538, 0.0066462, 0.0067398, 0.9932602]);
    assert!((mix[1] - more[1]).abs() > 1e-5, "not yet converged");

    // At the start of training, 20 iterations have another gradient than the limit.
    let start = [0.0, -5.0, -5.0, 0.0];
    let (mix, slope) = run(start, TWENTY);
    let a = 0.993307149;
    near("R", &mix, &[a, 1.0 - a, 1.0 - a, a]);
    near(
        "dL",
        &slope,
        &[0.0014965, 0.0036963, -0.0014965, -0.0036963],
    );
    for matrix in [start, steep] {
        let (mix, slope) = run(matrix, Projection::Exact2);
        near("R", &mix, &[a, 1.0 - a, 1.0 - a, a]);
        let s = 0.0010999;
        near("dL", &slope, &[-s, s, s, -s]);
    }
}

/// Rows of the mixing matrices of `outcome`.
fn matrices(outcome: &Outcome, n: usize) -> Vec<Vec<f64>> {
    outcome["out.2"]
        .chunks(n * n)
        .map(<[f64]>::to_vec)
        .collect()
}

#[test]
fn rows_sum_to_one_and_columns_nearly() {
    for (seed, n) in [2_usize, 3, 4, 8].into_iter().enumerate() {
        let raw: Vec<f64> = w(seed as u32 + 70, 20 * n * (n + 2));
        let case = case(13, 20, n as u32).values(&raw); // in [-1, 1)
        let outcome = case.oracle(|tape, x| record(tape, x, n as u32, TWENTY));
        for (number, matrix) in matrices(&outcome, n).into_iter().enumerate() {
            assert!(matrix.iter().all(|&v| v >= 0.0));
            for i in 0..n {
                let row: f64 = matrix[i * n..][..n].iter().sum();
                assert!((row - 1.0).abs() < 1e-12, "row {i} sums to {row}");
                let column: f64 = (0..n).map(|k| matrix[k * n + i]).sum();
                assert!((column - 1.0).abs() < 1e-3, "column {i} sums to {column}");
            }
            // |R|_2 <= sqrt(1 + c), c the largest excess of a column sum.
            let x = w(100 + number as u32, n);
            let square = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>();
            let product: Vec<f64> = matrix
                .chunks(n)
                .map(|row| row.iter().zip(&x).map(|(r, x)| r * x).sum())
                .collect();
            assert!(square(&product) <= (1.0 + 1e-3) * square(&x));
        }
    }
}

/// T-mHC-4: where nothing is written, the sum of the streams is kept as far as the columns sum to one.
#[test]
fn mixing_keeps_the_sum_of_the_streams_weighed_by_the_columns() {
    use braid_engine::ops::stream_mix::{Layout, Term, stream_mix};
    let (n, dim) = (4, 5);
    let case = case(17, 1, 4).tracked("x", [1, 20]);
    let outcome = case.oracle(|tape, x| {
        let weights = record(tape, x, 4, TWENTY)?[2];
        tape.output("mix", weights);
        let term = Term {
            x: x["x"],
            weights,
            layout: Layout::ToFrom,
        };
        Ok(vec![stream_mix(tape, &[term], 4)?])
    });
    let (mix, x, new) = (&outcome["mix"], case.input("x"), &outcome["out.0"]);
    for c in 0..dim {
        let sum: f64 = (0..n).map(|i| new[i * dim + c]).sum();
        let column = |j: usize| (0..n).map(|i| mix[i * n + j]).sum::<f64>();
        let want: f64 = (0..n).map(|j| column(j) * x[j * dim + c]).sum();
        assert!((sum - want).abs() < 1e-13, "channel {c}: {sum}, {want}");
    }
}

#[test]
fn the_rows_are_exact_and_the_columns_are_not() {
    // If the columns were exact, the matrix would be transposed; if both were, a maximum would be one of a row.
    let (mix, _) = project(&[2.0, -3.0, -1.0, 4.0], &[0.0; 4], TWENTY);
    assert!((mix[0] + mix[1] - 1.0).abs() < 1e-15 && (mix[2] + mix[3] - 1.0).abs() < 1e-15);
    let column = (mix[0] + mix[2] - 1.0).abs();
    assert!((column - 0.0149).abs() < 1e-4, "off by {column}");
}

#[test]
fn a_constant_added_to_a_column_changes_nothing() {
    for iterations in [1, 20] {
        let run = |shift: f64| {
            let logits = w(80, 9).into_iter().enumerate();
            let logits: Vec<f64> = logits
                .map(|(k, v)| if k % 3 == 1 { v + shift } else { v })
                .collect();
            project(&logits, &w(81, 9), Projection::Sinkhorn(iterations))
        };
        let ((mix, slope), (shifted, shifted_slope)) = (run(0.0), run(3.0));
        assert_close("R", &shifted, &mix, 1e-13);
        assert_close("dL", &shifted_slope, &slope, 1e-12);
    }
}

#[test]
fn raw_coefficients_are_clamped_and_then_have_no_gradient() {
    for projection in [TWENTY, Projection::Exact2] {
        let (clamped, slope) = project(&[1.0, -500.0, 0.5, 31.0], &w(82, 4), projection);
        let (limit, _) = project(&[1.0, -30.0, 0.5, 30.0], &w(82, 4), projection);
        assert_close("R", &clamped, &limit, EXACT);
        assert_eq!((slope[1], slope[3]), (0.0, 0.0));
        let mut raw = vec![400.0, -400.0, 400.0, -400.0];
        raw.extend([1.0, -500.0, 0.5, 31.0]);
        Case::seeded(14)
            .tracked("raw", [1, 8])
            .values(&raw)
            .check(F32, |tape, x| record(tape, x, 2, projection));
    }
}

#[test]
fn matrices_of_the_widest_range_stay_finite() {
    // Elements reach e^-60; columns of such have to be divided without an eps.
    let raw: Vec<f64> = w(83, 24 * 50).iter().map(|v| 60.0 * v).collect();
    let case = Case::seeded(15).tracked("raw", [50, 24]).values(&raw);
    for (name, executor) in braid_tests::executors() {
        let outcome = case.run_on(executor, |tape, x| record(tape, x, 4, TWENTY));
        for matrix in matrices(&outcome, 4) {
            for row in matrix.chunks(4) {
                let sum: f64 = row.iter().sum();
                assert!((sum - 1.0).abs() < 1e-6, "{name}: a row sums to {sum}");
            }
        }
        assert!(outcome["grad.raw"].iter().all(|v| v.is_finite()), "{name}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    case(16, 2, 3).oracle(|tape, x| {
        let refuse = |tape: &mut Tape, streams, projection| {
            let error = mhc_gates(tape, x["raw"], streams, projection);
            error.expect_err("refused").to_string()
        };
        assert_eq!(
            refuse(tape, 2, TWENTY),
            "mhc_gates: raw has shape [2, 15], expected [2, 8]"
        );
        assert_eq!(
            refuse(tape, 3, Projection::Exact2),
            "mhc_gates: Exact2 is not possible with 3 streams"
        );
        assert_eq!(
            refuse(tape, 3, Projection::Sinkhorn(0)),
            "mhc_gates: Sinkhorn(0) is not possible with 3 streams"
        );
        Ok(vec![copy(tape, x["raw"])?])
    });
}
