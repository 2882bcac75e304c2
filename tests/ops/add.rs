use braid_engine::ops::add::add;
use braid_tests::{Case, F32};

#[test]
fn agrees_everywhere() {
    for (seed, dim) in [1, 63, 64, 65, 96].into_iter().enumerate() {
        for rows in [1, 7, 70, 700] {
            let case = Case::seeded(seed as u64)
                .tracked("a", [rows, dim])
                .parameter("b", [rows, dim]);
            case.check(F32, |tape, x| Ok(vec![add(tape, x["a"], x["b"])?]));
        }
    }
}

#[test]
fn both_sides_may_be_the_same_tensor_and_one_may_be_fixed() {
    let case = Case::seeded(1).tracked("a", [7, 5]).plain("b", [35]);
    case.check(F32, |tape, x| {
        let twice = add(tape, x["a"], x["a"])?;
        Ok(vec![add(tape, twice, x["b"])?])
    });
}
