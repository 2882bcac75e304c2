use braid_engine::ops::embedding::embedding;
use braid_tests::{Case, EXACT, F32, assert_close};

#[test]
fn agrees_everywhere() {
    // Fewer ids than rows and more, so that ids repeat often, now and then and never.
    for (seed, (rows, vocab)) in [(1, 1), (1, 65), (7, 300), (70, 3), (70, 65), (700, 300)]
        .into_iter()
        .enumerate()
    {
        for dim in [1, 63, 64, 65, 96] {
            let case = Case::seeded(seed as u64)
                .ints("ids", [rows], vocab)
                .parameter("table", [vocab, dim]);
            case.check(F32, |tape, x| {
                Ok(vec![embedding(tape, x["ids"], x["table"])?])
            });
        }
    }
}

#[test]
fn a_table_that_is_no_parameter_gets_zeros_where_no_id_points() {
    let case = Case::seeded(1)
        .ints("ids", [2, 3], 2)
        .values(&[4.0, 0.0, 4.0, 4.0, 1.0, 0.0])
        .tracked("table", [6, 5]);
    let record = |tape: &mut braid_engine::tape::Tape, x: &braid_tests::Inputs| {
        Ok(vec![embedding(tape, x["ids"], x["table"])?])
    };
    case.check(F32, record);
    let outcome = case.oracle(record);
    for row in [2, 3, 5] {
        let gradient = &outcome["grad.table"][row * 5..][..5];
        assert_close("unused row", gradient, &[0.0; 5], EXACT);
    }
}

#[test]
fn ids_that_are_too_large_mean_the_last_row() {
    let case = Case::seeded(1)
        .ints("ids", [4], 1)
        .values(&[7.0, 2.0, 4_294_967_295.0, 0.0])
        .parameter("table", [3, 2]);
    let record = |tape: &mut braid_engine::tape::Tape, x: &braid_tests::Inputs| {
        Ok(vec![embedding(tape, x["ids"], x["table"])?])
    };
    case.check(F32, record);
    let (outcome, table) = (case.oracle(record), case.input("table"));
    let want = [&table[4..6], &table[4..6], &table[4..6], &table[0..2]].concat();
    assert_close("rows", &outcome["out.0"], &want, EXACT);
}
