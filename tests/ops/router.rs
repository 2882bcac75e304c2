use braid_engine::Result;
use braid_engine::ops::router::{Gates, router};
use braid_engine::tape::{Tape, Tensor};
use braid_tests::vectors::w;
use braid_tests::{Case, F32, Inputs, assert_close};

/// The three gates: 0 softmax, 1 softmax of the selected, 2 sigmoid scores with `bias`.
fn record(tape: &mut Tape, x: &Inputs, top_k: u32, mode: u32) -> Result<Vec<Tensor>> {
    let gates = match mode {
        0 => Gates::Softmax,
        1 => Gates::SoftmaxOfSelected,
        _ => Gates::Sigmoid {
            bias: x["bias"],
            scale: 2.5,
        },
    };
    let routes = router(tape, x["logits"], top_k, gates)?;
    tape.output("chosen", routes.chosen);
    Ok(vec![routes.gates])
}

fn case(seed: u64, rows: u32, experts: u32) -> Case {
    Case::seeded(seed)
        .tracked("logits", [rows, experts])
        .scaled(2.0, 0.0)
        .plain("bias", [experts])
        .scaled(0.2, 0.0)
}

#[test]
fn agrees_everywhere() {
    for mode in 0..3 {
        for (seed, (rows, experts, top_k)) in [
            (1, 1, 1),
            (3, 5, 2),
            (70, 8, 2),
            (65, 6, 6),
            (7, 63, 9),
            (130, 256, 3),
        ]
        .into_iter()
        .enumerate()
        {
            let case = case(seed as u64, rows, experts);
            case.check(F32, |tape, x| record(tape, x, top_k, mode));
        }
    }
}

/// Selected experts of a token, their gates, and the gradient of its logits.
type Token = ([f64; 2], [f64; 2], [f64; 4]);

/// G8 of the notes on residual mechanisms, section 8.
#[test]
fn gates_and_gradients_are_those_of_the_notes() {
    // By mode and token.
    let want: [[Token; 3]; 3] = [
        [
            (
                [0.0, 3.0],
                [0.320_439_7, 0.250_950_1],
                [0.038_294_9, -0.088_891_6, -0.067_947_8, 0.118_544_5],
            ),
            (
                [2.0, 1.0],
                [0.478_666_5, 0.183_955_5],
                [-0.049_893_8, 0.077_978_5, 0.018_863_7, -0.046_948_4],
            ),
            (
                [3.0, 0.0],
                [0.754_889_3, 0.162_679_2],
                [0.099_446_3, -0.001_815_3, -0.002_215_0, -0.095_416_0],
            ),
        ],
        [
            (
                [0.0, 3.0],
                [0.560_807_5, 0.439_192_5],
                [-0.086_914_0, 0.0, 0.0, 0.086_914_0],
            ),
            (
                [2.0, 1.0],
                [0.722_382_5, 0.277_617_5],
                [0.0, 0.077_108_0, -0.077_108_0, 0.0],
            ),
            (
                [3.0, 0.0],
                [0.822_706_2, 0.177_293_8],
                [0.107_601_5, 0.0, 0.0, -0.107_601_5],
            ),
        ],
        [
            (
                [1.0, 3.0],
                [1.239_845_7, 1.260_154_3],
                [0.0, -0.042_633_5, 0.0, 0.041_945_7],
            ),
            (
                [1.0, 3.0],
                [1.285_651_3, 1.214_348_7],
                [0.0, 0.058_082_8, 0.0, -0.061_703_2],
            ),
            (
                [3.0, 1.0],
                [2.084_989_0, 0.415_011_0],
                [0.0, 0.231_094_8, 0.0, -0.057_102_1],
            ),
        ],
    ];
    let logits: Vec<f64> = w(31, 12).into_iter().map(|v| 2.0 * v).collect();
    for (mode, tokens) in (0..).zip(want) {
        let case = Case::seeded(1)
            .tracked("logits", [3, 4])
            .values(&logits)
            .plain("bias", [4])
            .values(&[0.0, 0.3, -0.2, 0.1])
            .output_gradient(&w(32, 12));
        let outcome = case.oracle(|tape, x| record(tape, x, 2, mode));
        for (token, (chosen, gates, gradient)) in tokens.into_iter().enumerate() {
            let what = format!("mode {mode}, token {token}");
            assert_eq!(outcome["chosen"][2 * token..][..2], chosen, "{what}");
            let got = chosen.map(|e| outcome["out.0"][4 * token + e as usize]);
            assert_close(&what, &got, &gates, 1e-6);
            let got = &outcome["grad.logits"][4 * token..][..4];
            assert_close(&what, got, &gradient, 1e-6);
        }
    }
}

#[test]
fn of_equal_scores_the_lower_number_wins() {
    for mode in 0..3 {
        let case = Case::seeded(1)
            .tracked("logits", [2, 5])
            .values(&[1.0, 2.0, 1.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
            .plain("bias", [5])
            .values(&[0.0; 5]);
        for (name, executor) in braid_tests::executors() {
            let outcome = case.run_on(executor, |tape, x| record(tape, x, 3, mode));
            let want = [1.0, 3.0, 0.0, 0.0, 1.0, 2.0];
            assert_eq!(outcome["chosen"], want, "{name}, mode {mode}");
        }
    }
}

#[test]
fn gates_of_a_token_sum_to_one_or_to_the_scale() {
    for (mode, total) in [(1, 1.0), (2, 2.5)] {
        let outcome = case(3, 50, 7).oracle(|tape, x| record(tape, x, 3, mode));
        for gates in outcome["out.0"].chunks(7) {
            assert!(
                (gates.iter().sum::<f64>() - total).abs() < 1e-12,
                "{gates:?}"
            );
            assert_eq!(gates.iter().filter(|&&gate| gate > 0.0).count(), 3);
        }
    }
}

#[test]
fn logits_far_apart_and_equal_tokens() {
    for mode in 0..3 {
        let case = Case::seeded(1)
            .tracked("logits", [3, 4])
            .values(&[
                90.0, -90.0, 0.0, 30.0, 700.0, 0.0, -700.0, 1.0, 90.0, -90.0, 0.0, 30.0,
            ])
            .plain("bias", [4])
            .values(&[0.0; 4]);
        for (name, executor) in braid_tests::executors() {
            let outcome = case.run_on(executor, |tape, x| record(tape, x, 2, mode));
            let gates = &outcome["out.0"];
            assert!(
                gates.iter().all(|gate| gate.is_finite()),
                "{name}: {gates:?}"
            );
            assert_eq!(gates[..4], gates[8..], "{name}: tokens with equal logits");
        }
    }
}

#[test]
fn impossible_selections_are_refused() {
    for (top_k, part) in [(0, "0 of 4"), (5, "5 of 4")] {
        let parameters = braid_engine::params::Parameters::layout(vec![]).expect("empty");
        let mut tape = Tape::new(std::sync::Arc::new(parameters));
        let logits = tape.tracked_input("logits", [3, 4]);
        let error = router(&mut tape, logits, top_k, Gates::Softmax).expect_err("refused");
        assert!(error.to_string().contains(part), "{error}");
    }
}
