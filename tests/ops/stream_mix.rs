use braid_engine::ops::copy::copy;
use braid_engine::ops::stream_mix::{Layout, Term, stream_mix};
use braid_tests::{Case, F32, assert_close};

/// A mix from `from` to `to` streams.
fn case(seed: u64, rows: u32, dim: u32, from: u32, to: u32) -> Case {
    Case::seeded(seed)
        .tracked("x", [rows, from * dim])
        .tracked("w", [rows, from * to])
}

#[test]
fn agrees_everywhere() {
    for (seed, dim) in [1, 63, 64, 65].into_iter().enumerate() {
        for (rows, from, to) in [(1, 2, 2), (7, 1, 3), (70, 4, 1), (7, 3, 4), (7, 8, 8)] {
            for layout in [Layout::FromTo, Layout::ToFrom] {
                case(seed as u64, rows, dim, from, to).check(F32, |tape, x| {
                    let (x, weights) = (x["x"], x["w"]);
                    let term = Term { x, weights, layout };
                    Ok(vec![stream_mix(tape, &[term], to)?])
                });
            }
        }
    }
}

#[test]
fn terms_are_added() {
    let case = case(1, 7, 33, 3, 3)
        .tracked("y", [7, 33])
        .tracked("v", [7, 3]);
    case.check(F32, |tape, x| {
        let terms = [Term::new(x["x"], x["w"]), Term::new(x["y"], x["v"])];
        Ok(vec![stream_mix(tape, &terms, 3)?])
    });
}

#[test]
fn all_rows_may_share_constant_weights() {
    for (from, to) in [(1, 3), (3, 1)] {
        Case::seeded(2)
            .tracked("x", [20, from * 9])
            .check(F32, |tape, x| {
                let weights = tape.constant("weights", [1, 3], vec![0.5, -1.0, 2.0]);
                Ok(vec![stream_mix(tape, &[Term::new(x["x"], weights)], to)?])
            });
    }
}

#[test]
fn inputs_without_a_gradient_are_left_alone() {
    for tracked in ["x", "w"] {
        let mut case = Case::seeded(3);
        for (name, width) in [("x", 27), ("w", 6)] {
            case = if name == tracked {
                case.tracked(name, [7, width])
            } else {
                case.plain(name, [7, width])
            };
        }
        case.check(F32, |tape, x| {
            Ok(vec![stream_mix(tape, &[Term::new(x["x"], x["w"])], 2)?])
        });
    }
}

#[test]
fn the_layouts_are_transposes() {
    // Two streams of one channel: out_j = sum_i w x_i.
    let case = Case::seeded(4)
        .tracked("x", [1, 2])
        .values(&[1.0, 10.0])
        .tracked("w", [1, 4])
        .values(&[1.0, 2.0, 3.0, 4.0]);
    for (layout, want) in [
        (Layout::FromTo, [31.0, 42.0]),
        (Layout::ToFrom, [21.0, 43.0]),
    ] {
        let outcome = case.oracle(|tape, x| {
            let (x, weights) = (x["x"], x["w"]);
            Ok(vec![stream_mix(tape, &[Term { x, weights, layout }], 2)?])
        });
        assert_close("mix", &outcome["out.0"], &want, 1e-15);
    }
}

#[test]
fn wrong_shapes_are_refused_by_name() {
    let case = case(5, 2, 3, 2, 2).tracked("y", [2, 4]);
    case.oracle(|tape, x| {
        let error = stream_mix(tape, &[Term::new(x["x"], x["w"])], 3);
        let message = error.expect_err("four weights, three streams").to_string();
        assert_eq!(
            message,
            "stream_mix: weights has shape [2, 4], expected [\"rows of x or 1\", \"a multiple of the streams written\"]"
        );
        let terms = [Term::new(x["x"], x["w"]), Term::new(x["y"], x["w"])];
        let error = stream_mix(tape, &terms, 2);
        let message = error.expect_err("another length").to_string();
        assert_eq!(message, "stream_mix: x has shape [2, 4], expected [2, 6]");
        let message = stream_mix(tape, &[], 2).expect_err("no term").to_string();
        assert!(message.contains("nothing to mix"), "{message}");
        Ok(vec![copy(tape, x["x"])?])
    });
}
