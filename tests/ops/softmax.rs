use braid_engine::ops::softmax::softmax;
use braid_tests::{Case, F32, assert_close};

#[test]
fn agrees_everywhere() {
    for (seed, len) in [1, 2, 5, 63, 64, 65].into_iter().enumerate() {
        Case::seeded(seed as u64)
            .parameter("z", [len])
            .scaled(2.0, 0.0)
            .check(F32, |tape, x| Ok(vec![softmax(tape, x["z"])?]));
    }
}

#[test]
fn weights_sum_to_one_and_gradients_to_zero_whatever_is_added_to_the_logits() {
    let case = |shift: f64| Case::seeded(7).parameter("z", [9]).scaled(3.0, shift);
    let run = |shift| case(shift).oracle(|tape, x| Ok(vec![softmax(tape, x["z"])?]));
    let (near, far) = (run(0.0), run(1000.0));
    assert_close("weights", &far["out.0"], &near["out.0"], 1e-12);
    assert_close("gradient", &far["grad.z"], &near["grad.z"], 1e-12);
    assert!((near["out.0"].iter().sum::<f64>() - 1.0).abs() < 1e-14);
    assert!(near["grad.z"].iter().sum::<f64>().abs() < 1e-14);
    assert!(near["grad.z"].iter().any(|v| v.abs() > 1e-3));
}
