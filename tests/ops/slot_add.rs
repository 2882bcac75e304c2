use braid_engine::ops::copy::copy;
use braid_engine::ops::slot_add::slot_add;
use braid_tests::{Case, F32};

#[test]
fn agrees_everywhere() {
    for (seed, dim) in [1, 63, 64, 65].into_iter().enumerate() {
        let case = Case::seeded(seed as u64)
            .tracked("old", [7, dim])
            .tracked("y", [7, dim]);
        case.check(F32, |tape, x| {
            let (history, slots) = x.history(tape, &["old"], 7, dim)?;
            let sum = slot_add(tape, history, slots[0], x["y"])?;
            let sum = slot_add(tape, history, sum, x["y"])?;
            Ok(vec![copy(tape, sum.tensor)?])
        });
    }
}
