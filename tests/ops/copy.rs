use braid_engine::ops::copy::copy;
use braid_tests::{Case, EXACT, F32, assert_close, executors};

#[test]
fn agrees_everywhere() {
    for (seed, len) in [1, 63, 64, 65, 96 * 70].into_iter().enumerate() {
        let case = Case::seeded(seed as u64).tracked("x", [len]);
        case.check(F32, |tape, x| Ok(vec![copy(tape, x["x"])?]));
    }
}

#[test]
fn more_elements_than_a_row_of_workgroups_arrive() {
    // 65,535 workgroups of 64 and one element more: the grid folds into its second dimension.
    let case = Case::seeded(1).plain("x", [65_535 * 64 + 1]);
    for (name, executor) in executors() {
        let outcome = case.run_on(executor, |tape, x| {
            let y = copy(tape, x["x"])?;
            tape.output("y", y);
            Ok(vec![])
        });
        assert_close(name, &outcome["y"], case.input("x"), EXACT);
    }
}
