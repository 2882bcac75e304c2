use braid_engine::ops::copy::copy;
use braid_engine::ops::replace::replace;
use braid_tests::{Case, executors, oracle};

/// `y` after its columns `first..first + columns` were replaced, and what should be there.
fn case(rows: u32, width: u32, first: u32, columns: u32, shared: bool, on: f64) {
    let by_rows = if shared { 1 } else { rows };
    let case = Case::seeded(u64::from(rows + width))
        .plain("on", [1])
        .values(&[on])
        .plain("by", [by_rows, columns])
        .plain("x", [rows, width]);
    let mut want = case.input("x").to_vec();
    if on != 0.0 {
        for row in 0..rows {
            for c in 0..columns {
                let from = if shared { c } else { row * columns + c };
                want[(row * width + first + c) as usize] = case.input("by")[from as usize];
            }
        }
    }
    let mut all = executors();
    all.push(("plain f64", oracle()));
    for (name, executor) in all {
        let got = case.run_on(executor, |tape, x| {
            let y = copy(tape, x["x"])?;
            replace(tape, x["on"], x["by"], y, first..first + columns)?;
            tape.output("y", y);
            Ok(Vec::new())
        });
        assert_eq!(
            got["y"], want,
            "{name}: {rows} {width} {first} {columns} {shared} {on}"
        );
    }
}

#[test]
fn columns_become_other_numbers_while_the_switch_is_on() {
    for (rows, width, first, columns) in [
        (1, 1, 0, 1),
        (7, 5, 1, 3),
        (70, 33, 0, 33),
        (3, 130, 65, 65),
    ] {
        for shared in [false, true] {
            for on in [0.0, 1.0] {
                case(rows, width, first, columns, shared, on);
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let case = Case::seeded(1)
        .plain("on", [1])
        .plain("by", [2, 3])
        .plain("y", [4, 5]);
    case.oracle(|tape, x| {
        for columns in [0..3, 3..6, 2..2] {
            assert!(replace(tape, x["on"], x["by"], x["y"], columns).is_err());
        }
        Ok(Vec::new())
    });
}
