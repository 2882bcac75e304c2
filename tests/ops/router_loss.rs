use braid_engine::ops::router_loss::{RouterLoss, router_loss};
use braid_tests::vectors::w;
use braid_tests::{Case, F32, Outcome, assert_close};

fn check(case: &Case, how: RouterLoss) {
    case.check(F32, |tape, x| {
        let losses = router_loss(tape, x["logits"], x["chosen"], &how)?;
        tape.output("statistics", losses.statistics);
        Ok(vec![losses.balance, losses.z])
    });
}

fn oracle(case: &Case, how: RouterLoss) -> Outcome {
    case.oracle(|tape, x| {
        let losses = router_loss(tape, x["logits"], x["chosen"], &how)?;
        tape.output("statistics", losses.statistics);
        Ok(vec![losses.balance, losses.z])
    })
}

#[test]
fn agrees_everywhere() {
    for sigmoid in [false, true] {
        for (seed, (rows, span, experts, top_k)) in [
            (1, 1, 1, 1),
            (6, 3, 5, 2),
            (38, 19, 4, 2),
            (140, 140, 8, 3),
            (2000, 100, 3, 1),
        ]
        .into_iter()
        .enumerate()
        {
            let case = Case::seeded(seed as u64)
                .tracked("logits", [rows, experts])
                .scaled(2.0, 0.0)
                .ints("chosen", [rows, top_k], experts);
            let how = RouterLoss {
                span,
                sigmoid,
                balance: 0.3,
                z: 0.2,
            };
            check(&case, how);
        }
    }
}

#[test]
fn one_loss_alone_has_a_gradient() {
    for only_z in [false, true] {
        let case = Case::seeded(1)
            .tracked("logits", [14, 5])
            .ints("chosen", [14, 2], 5);
        let how = RouterLoss {
            span: 7,
            sigmoid: true,
            balance: 0.5,
            z: 0.25,
        };
        case.check(F32, |tape, x| {
            let losses = router_loss(tape, x["logits"], x["chosen"], &how)?;
            Ok(vec![if only_z { losses.z } else { losses.balance }])
        });
    }
}

/// G8 and the last line of G12 of the notes on residual mechanisms, section 8.
#[test]
fn losses_are_those_of_the_notes() {
    let logits: Vec<f64> = w(31, 12).into_iter().map(|v| 2.0 * v).collect();
    let case = |chosen: &[f64]| {
        Case::seeded(1)
            .tracked("logits", [3, 4])
            .values(&logits)
            .ints("chosen", [3, 2], 4)
            .values(chosen)
    };
    let how = RouterLoss {
        span: 3,
        sigmoid: false,
        balance: 0.01,
        z: 1e-3,
    };
    let outcome = oracle(&case(&[0.0, 3.0, 2.0, 1.0, 3.0, 0.0]), how);
    assert_close(
        "counts",
        &outcome["statistics"][..4],
        &[2.0, 1.0, 1.0, 2.0],
        1e-15,
    );
    assert_close("balance", &outcome["out.0"], &[0.010_725_192], 1e-7);
    assert_close("z", &outcome["out.1"], &[0.002_616_875], 1e-6);

    let how = RouterLoss {
        span: 3,
        sigmoid: true,
        balance: 1e-4,
        z: 0.0,
    };
    let outcome = oracle(&case(&[1.0, 3.0, 1.0, 3.0, 3.0, 1.0]), how);
    assert_close(
        "sequence loss",
        &outcome["out.0"],
        &[0.000_103_313_762],
        1e-8,
    );
}

#[test]
fn a_uniform_router_has_the_least_balance_loss() {
    for sigmoid in [false, true] {
        // Two groups of four tokens; probabilities are equal, so the counts do not matter.
        let case = Case::seeded(1)
            .tracked("logits", [8, 4])
            .values(&[0.7; 32])
            .ints("chosen", [8, 2], 4);
        let how = RouterLoss {
            span: 4,
            sigmoid,
            balance: 0.01,
            z: 0.0,
        };
        let outcome = oracle(&case, how);
        assert_close("balance", &outcome["out.0"], &[0.01], 1e-14);
        assert_close(
            "mean probabilities",
            &outcome["statistics"][4..],
            &[0.25; 4],
            1e-14,
        );
    }
}

#[test]
fn groups_have_to_fill_the_batch() {
    let parameters = braid_engine::params::Parameters::layout(vec![]).expect("empty");
    let mut tape = braid_engine::tape::Tape::new(std::sync::Arc::new(parameters));
    let logits = tape.tracked_input("logits", [8, 4]);
    let chosen = tape.input_ints("chosen", [8, 2]);
    let how = RouterLoss {
        span: 3,
        sigmoid: false,
        balance: 0.01,
        z: 0.0,
    };
    let error = router_loss(&mut tape, logits, chosen, &how).expect_err("refused");
    assert!(
        error.to_string().contains("8 rows are no groups of 3"),
        "{error}"
    );
}
