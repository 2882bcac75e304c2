use braid_engine::Result;
use braid_engine::ops::add::add;
use braid_engine::ops::copy::copy;
use braid_engine::ops::matmul::linear;
use braid_engine::ops::softmax::softmax;
use braid_engine::ops::static_mix::static_mix;
use braid_engine::tape::{Tape, Tensor};
use braid_tests::vectors::w;
use braid_tests::{Case, F32, F32_LONG, Inputs, assert_close};

fn case(seed: u64, [rows, dim]: [u32; 2], sources: usize, weights: usize) -> Case {
    let mut case = Case::seeded(seed);
    for i in 0..sources {
        case = case.tracked(&format!("s{i}"), [rows, dim]);
    }
    case.parameter("w", [weights as u32])
}

/// Mix the sources of these numbers.
fn mix(
    tape: &mut Tape,
    x: &Inputs,
    [rows, dim]: [u32; 2],
    sources: usize,
    order: &[usize],
    weights: Tensor,
) -> Result<Tensor> {
    let names: Vec<String> = (0..sources).map(|i| format!("s{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (history, slots) = x.history(tape, &names, rows, dim)?;
    let slots: Vec<_> = order.iter().map(|&i| slots[i]).collect();
    static_mix(tape, history, &slots, weights)
}

#[test]
fn agrees_everywhere() {
    for (seed, (shape, count)) in [
        ([1, 1], 1),
        ([7, 5], 2),
        ([7, 63], 5),
        ([70, 64], 3),
        ([7, 65], 4),
        ([3, 12], 64),
    ]
    .into_iter()
    .enumerate()
    {
        let order: Vec<usize> = (0..count).collect();
        case(seed as u64, shape, count, count).check(F32, |tape, x| {
            Ok(vec![mix(tape, x, shape, count, &order, x["w"])?])
        });
    }
}

#[test]
fn a_long_sum_for_the_weights_agrees() {
    let shape = [200, 100];
    case(11, shape, 3, 3).check(F32_LONG, |tape, x| {
        Ok(vec![mix(tape, x, shape, 3, &[0, 1, 2], x["w"])?])
    });
}

#[test]
fn some_sources_may_be_left_out_and_some_come_twice() {
    let shape = [7, 12];
    case(12, shape, 5, 4).check(F32, |tape, x| {
        Ok(vec![mix(tape, x, shape, 5, &[3, 0, 3, 4], x["w"])?])
    });
}

#[test]
fn agrees_with_a_softmax_of_logits_in_front() {
    let shape = [7, 33];
    case(13, shape, 4, 4).check(F32, |tape, x| {
        let weights = softmax(tape, x["w"])?;
        Ok(vec![mix(tape, x, shape, 4, &[0, 1, 2, 3], weights)?])
    });
}

#[test]
fn weights_and_sources_may_be_constants() {
    let shape = [7, 12];
    let case = Case::seeded(14)
        .plain("s0", shape)
        .tracked("s1", shape)
        .plain("w", [2]);
    case.check(F32, |tape, x| {
        Ok(vec![mix(tape, x, shape, 2, &[0, 1], x["w"])?])
    });
}

#[test]
fn wrong_numbers_of_sources_and_weights_are_refused() {
    let shape = [2, 3];
    case(15, shape, 1, 2).oracle(|tape, x| {
        let message = |order: &[usize], tape: &mut Tape| {
            let error = mix(tape, x, shape, 1, order, x["w"]);
            error.expect_err("refused").to_string()
        };
        assert_eq!(
            message(&[0], tape),
            "static_mix: weights has shape [2], expected [1]"
        );
        assert!(message(&[], tape).contains("0 sources"));
        assert!(message(&[0; 65], tape).contains("65 sources"));
        Ok(vec![copy(tape, x["s0"])?])
    });
}

/// G7 of the notes on residual mechanisms.
#[test]
fn golden_vector_g7_a_softmax_mix() {
    let sources = w(131, 12);
    let mut case = Case::seeded(1);
    for (i, source) in sources.chunks(3).enumerate() {
        case = case.tracked(&format!("s{i}"), [1, 3]).values(source);
    }
    let case = case
        .parameter("w", [4])
        .values(&w(130, 4))
        .plain("g", [1, 3])
        .values(&w(132, 3))
        .tracked("factor", [1]);
    let outcome = case.oracle(|tape, x| {
        let weights = softmax(tape, x["w"])?;
        tape.output("weights", weights);
        let mixed = mix(tape, x, [1, 3], 4, &[0, 1, 2, 3], weights)?;
        tape.output("mixed", mixed);
        // The gradient of this output is a random number; that of the factor says which.
        let product = linear(tape, mixed, x["g"])?;
        Ok(vec![add(tape, product, x["factor"])?])
    });
    let near = |what: &str, got: &[f64], want: &[f64]| {
        for (a, b) in got.iter().zip(want) {
            assert!((a - b).abs() < 1e-7, "{what}: {got:?}, expected {want:?}");
        }
    };
    near(
        "s",
        &outcome["weights"],
        &[0.4044899, 0.2456791, 0.2437876, 0.1060434],
    );
    near("Y", &outcome["mixed"], &[0.2102486, 0.4823775, -0.3839990]);
    let factor = outcome["grad.factor"][0];
    let dw: Vec<f64> = outcome["grad.w"].iter().map(|v| v / factor).collect();
    near("dw", &dw, &[0.2478828, -0.0258651, -0.1407719, -0.0812459]);
    let dx: Vec<f64> = outcome["grad.s1"].iter().map(|v| v / factor).collect();
    let want: Vec<f64> = w(132, 3)
        .iter()
        .map(|g| g * outcome["weights"][1])
        .collect();
    assert_close("dX_1", &dx, &want, 1e-12);
}
