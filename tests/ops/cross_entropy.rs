use braid_engine::ops::cross_entropy::cross_entropy;
use braid_tests::{Case, F32, assert_close};

#[test]
fn agrees_everywhere() {
    for (seed, vocab) in [1, 2, 63, 64, 65, 300].into_iter().enumerate() {
        for rows in [1, 7, 70, 1100] {
            let case = Case::seeded(seed as u64)
                .tracked("logits", [rows, vocab])
                .scaled(2.0, 0.5)
                .ints("labels", [rows], vocab);
            case.check(F32, |tape, x| {
                Ok(vec![
                    cross_entropy(tape, x["logits"], x["labels"], 0.25)?.loss,
                ])
            });
        }
    }
}

#[test]
fn losses_of_rows_are_not_scaled() {
    let case = Case::seeded(1)
        .tracked("logits", [2, 4])
        .values(&[1.0, 1.0, 1.0, 1.0, 0.0, 50.0, 0.0, 0.0])
        .ints("labels", [2], 1)
        .values(&[3.0, 1.0]);
    let outcome = case.oracle(|tape, x| {
        let out = cross_entropy(tape, x["logits"], x["labels"], 0.5)?;
        tape.output("row_losses", out.row_losses);
        Ok(vec![out.loss])
    });
    let ln4 = 4.0_f64.ln();
    assert_close("rows", &outcome["row_losses"], &[ln4, 0.0], 1e-12);
    assert_close("loss", &outcome["out.0"], &[0.5 * ln4 / 2.0], 1e-12);
}

#[test]
fn logits_of_ten_thousand_are_no_trouble() {
    let case = Case::seeded(1)
        .tracked("logits", [3, 3])
        .values(&[1e4, -1e4, 0.0, -1e4, -1e4, -1e4, 1e4, 1e4, -1e4])
        .ints("labels", [3], 3)
        .values(&[0.0, 1.0, 2.0]);
    case.check(F32, |tape, x| {
        Ok(vec![
            cross_entropy(tape, x["logits"], x["labels"], 1.0)?.loss,
        ])
    });
}

#[test]
fn logits_may_be_read_twice_with_different_labels() {
    let case = Case::seeded(1)
        .tracked("logits", [7, 5])
        .ints("one", [7], 5)
        .ints("two", [7], 5);
    case.check(F32, |tape, x| {
        let one = cross_entropy(tape, x["logits"], x["one"], 1.0)?.loss;
        let two = cross_entropy(tape, x["logits"], x["two"], 1.0)?.loss;
        Ok(vec![one, two])
    });
}
