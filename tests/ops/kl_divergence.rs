use braid_engine::ops::kl_divergence::kl_divergence;
use braid_engine::tape::Tape;
use braid_tests::{Case, F32, Inputs, assert_close, compare, executors};

fn record(tape: &mut Tape, x: &Inputs) -> braid_engine::Result<Vec<braid_engine::tape::Tensor>> {
    let divergence = kl_divergence(tape, x["p"], x["q"])?;
    tape.output("divergence", divergence);
    Ok(Vec::new())
}

#[test]
fn agrees_with_the_formula_everywhere() {
    for (seed, vocab) in [1, 2, 63, 65, 301].into_iter().enumerate() {
        for rows in [1, 7, 70] {
            let case = Case::seeded(seed as u64)
                .plain("p", [rows, vocab])
                .scaled(3.0, 40.0)
                .plain("q", [rows, vocab])
                .scaled(3.0, -7.0);
            let want = case.oracle(record);
            let softmax = |row: &[f64]| -> Vec<f64> {
                let sum: f64 = row.iter().map(|z| z.exp()).sum();
                row.iter().map(|z| z.exp() / sum).collect()
            };
            let rows = case
                .input("p")
                .chunks(vocab as usize)
                .zip(case.input("q").chunks(vocab as usize));
            let plain = rows.map(|(p, q)| {
                let (p, q) = (softmax(p), softmax(q));
                p.iter().zip(&q).map(|(p, q)| p * (p / q).ln()).sum()
            });
            let plain: Vec<f64> = plain.collect();
            assert_close("formula", &want["divergence"], &plain, 1e-12);
            for (name, executor) in executors() {
                compare(name, &case.run_on(executor, record), &want, F32);
            }
        }
    }
}

#[test]
fn equal_rows_have_no_divergence_to_the_bit() {
    let case = Case::seeded(1).plain("p", [9, 33]).scaled(5.0, 100.0);
    let case = case.clone().plain("q", [9, 33]).values(case.input("p"));
    for (name, executor) in executors() {
        assert_eq!(
            case.run_on(executor, record)["divergence"],
            vec![0.0; 9],
            "{name}"
        );
    }
}

#[test]
fn other_shapes_are_refused() {
    let case = Case::seeded(1).plain("p", [2, 3]).plain("q", [3, 3]);
    case.oracle(|tape, x| {
        assert!(kl_divergence(tape, x["p"], x["q"]).is_err());
        Ok(Vec::new())
    });
}
