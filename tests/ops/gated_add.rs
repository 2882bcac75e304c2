use braid_engine::ops::gated_add::gated_add;
use braid_tests::{Case, F32};

#[test]
fn agrees_everywhere() {
    for (seed, dim) in [1, 63, 64, 65].into_iter().enumerate() {
        for (rows, experts) in [(1, 1), (7, 3), (70, 4)] {
            let case = Case::seeded(seed as u64)
                .tracked("gates", [rows, experts])
                .tracked("u", [rows, dim])
                .tracked("v", [rows, dim]);
            // A sum of all experts; the first has no sum before it, two use the same output.
            case.check(F32, |tape, x| {
                let mut sum = None;
                for expert in 0..experts {
                    let u = x[if expert % 2 == 0 { "u" } else { "v" }];
                    sum = Some(gated_add(tape, sum, x["gates"], expert, u)?);
                }
                Ok(sum.into_iter().collect())
            });
        }
    }
}

#[test]
fn gates_of_experts_that_are_not_added_have_a_gradient_of_zero() {
    let case = Case::seeded(1)
        .tracked("gates", [5, 3])
        .tracked("sum", [5, 4])
        .plain("u", [5, 4]);
    case.check(F32, |tape, x| {
        Ok(vec![gated_add(
            tape,
            Some(x["sum"]),
            x["gates"],
            1,
            x["u"],
        )?])
    });
    let outcome = case.oracle(|tape, x| {
        Ok(vec![gated_add(
            tape,
            Some(x["sum"]),
            x["gates"],
            1,
            x["u"],
        )?])
    });
    for gradient in outcome["grad.gates"].chunks(3) {
        assert!(gradient[0] == 0.0 && gradient[1] != 0.0 && gradient[2] == 0.0);
    }
}
