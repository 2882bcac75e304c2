use braid_engine::Result;
use braid_engine::ops::copy::copy;
use braid_engine::ops::stream_coefficients::{Dynamic, stream_coefficients};
use braid_engine::tape::{Tape, Tensor};
use braid_tests::{Case, F32, Inputs, assert_close};

/// How many coefficients there are, and what they share.
#[derive(Clone, Copy, Debug)]
struct Form {
    columns: u32,
    parts: u32,
    scales: u32,
    group: u32,
    squash: bool,
}

/// The mixing matrix of hyper-connections with three streams.
const HYPER: Form = Form {
    columns: 9,
    parts: 3,
    scales: 1,
    group: 9,
    squash: true,
};

/// mHC with two streams.
const MANIFOLD: Form = Form {
    columns: 8,
    parts: 1,
    scales: 3,
    group: 2,
    squash: false,
};

impl Form {
    fn case(&self, seed: u64, rows: u32) -> Case {
        Case::seeded(seed)
            .tracked("dots", [rows, self.columns])
            .tracked("factors", [rows * self.parts])
            .scaled(0.3, 1.0)
            .parameter("bias", [self.columns])
            .parameter("scale", [self.scales])
    }

    fn record(&self, tape: &mut Tape, rows: u32, x: &Inputs) -> Result<Tensor> {
        let dynamic = Dynamic {
            dots: x["dots"],
            factors: x["factors"],
            scale: x["scale"],
            group: self.group,
            squash: self.squash,
        };
        stream_coefficients(tape, rows, x["bias"], Some(&dynamic))
    }
}

#[test]
fn agrees_everywhere() {
    for (seed, form) in [HYPER, MANIFOLD].into_iter().enumerate() {
        for squash in [true, false] {
            let form = Form { squash, ..form };
            for rows in [1, 7, 70, 700] {
                form.case(seed as u64, rows)
                    .check(F32, |tape, x| Ok(vec![form.record(tape, rows, x)?]));
            }
        }
    }
}

#[test]
fn static_coefficients_are_the_bias() {
    for rows in [1, 70] {
        let case = Case::seeded(1).parameter("bias", [3, 3]);
        case.check(F32, |tape, x| {
            Ok(vec![stream_coefficients(tape, rows, x["bias"], None)?])
        });
        let outcome =
            case.oracle(|tape, x| Ok(vec![stream_coefficients(tape, rows, x["bias"], None)?]));
        let want = case.input("bias").repeat(rows as usize);
        assert_close("coefficients", &outcome["out.0"], &want, 1e-15);
    }
}

#[test]
fn dots_or_factors_may_have_no_gradient() {
    for tracked in ["dots", "factors"] {
        let mut case = Case::seeded(2);
        for (name, len) in [("dots", 63), ("factors", 21)] {
            case = if name == tracked {
                case.tracked(name, [len])
            } else {
                case.plain(name, [len])
            };
        }
        let case = case.parameter("bias", [9]).parameter("scale", [1]);
        case.check(F32, |tape, x| Ok(vec![HYPER.record(tape, 7, x)?]));
    }
}

#[test]
fn large_products_saturate() {
    let form = Form {
        columns: 2,
        parts: 1,
        group: 2,
        ..HYPER
    };
    let case = Case::seeded(3)
        .tracked("dots", [1, 2])
        .values(&[3e4, -3e4])
        .tracked("factors", [1])
        .values(&[1e3])
        .parameter("bias", [2])
        .values(&[1.0, 1.0])
        .parameter("scale", [1])
        .values(&[0.5]);
    case.check(F32, |tape, x| Ok(vec![form.record(tape, 1, x)?]));
    let outcome = case.oracle(|tape, x| Ok(vec![form.record(tape, 1, x)?]));
    assert_close("coefficients", &outcome["out.0"], &[1.5, 0.5], 1e-15);
}

#[test]
fn wrong_shapes_are_refused_by_name() {
    let case = HYPER.case(4, 7);
    case.oracle(|tape, x| {
        let mut refuse = |rows: u32, bias: Tensor, scale: Tensor| {
            let dynamic = Dynamic {
                dots: x["dots"],
                factors: x["factors"],
                scale,
                group: 9,
                squash: true,
            };
            let error = stream_coefficients(tape, rows, bias, Some(&dynamic));
            error.expect_err("refused").to_string()
        };
        assert_eq!(
            refuse(6, x["bias"], x["scale"]),
            "stream_coefficients: dots has shape [7, 9], expected [6, 9]"
        );
        assert_eq!(
            refuse(7, x["bias"], x["bias"]),
            "stream_coefficients: scale has shape [9], expected [1]"
        );
        Ok(vec![copy(tape, x["dots"])?])
    });
}
