use braid_engine::Result;
use braid_engine::ops::copy::copy;
use braid_engine::ops::dual_write::dual_write;
use braid_engine::tape::{Slot, Tape, Tensor};
use braid_tests::{Case, EXACT, F32, Inputs, assert_close, executors};

fn case(seed: u64, rows: u32, dim: u32) -> Case {
    Case::seeded(seed)
        .tracked("gates", [rows, 5])
        .tracked("y", [rows, dim])
        .tracked("p0", [rows, dim])
        .tracked("p1", [rows, dim])
}

/// Copies, because the gradient of a slot belongs to the history.
fn copies(tape: &mut Tape, slots: [Slot; 2]) -> Result<Vec<Tensor>> {
    slots.iter().map(|slot| copy(tape, slot.tensor)).collect()
}

fn update(tape: &mut Tape, x: &Inputs, rows: u32, dim: u32) -> Result<Vec<Tensor>> {
    let (history, old) = x.history(tape, &["p0", "p1"], rows, dim)?;
    let new = dual_write(tape, history, Some([old[0], old[1]]), x["gates"], x["y"])?;
    copies(tape, new)
}

#[test]
fn agrees_everywhere() {
    for (seed, dim) in [1, 63, 64, 65, 96].into_iter().enumerate() {
        for rows in [1, 7, 70] {
            let case = case(seed as u64, rows, dim);
            case.check(F32, |tape, x| update(tape, x, rows, dim));
        }
    }
}

#[test]
fn the_first_write_of_a_block_has_no_old_partials() {
    let case = Case::seeded(1)
        .tracked("gates", [7, 5])
        .tracked("y", [7, 65]);
    case.check(F32, |tape, x| {
        let history = tape.history("history", 7, 65);
        let new = dual_write(tape, history, None, x["gates"], x["y"])?;
        copies(tape, new)
    });
}

#[test]
fn old_partials_may_be_one_slot() {
    let case = case(2, 7, 33);
    case.check(F32, |tape, x| {
        let (history, old) = x.history(tape, &["p0"], 7, 33)?;
        let new = dual_write(tape, history, Some([old[0]; 2]), x["gates"], x["y"])?;
        copies(tape, new)
    });
}

#[test]
fn one_of_the_new_partials_may_be_unused() {
    for used in 0..2 {
        let case = case(3, 7, 33);
        case.check(F32, |tape, x| {
            let (history, old) = x.history(tape, &["p0", "p1"], 7, 33)?;
            let old = Some([old[0], old[1]]);
            let new = dual_write(tape, history, old, x["gates"], x["y"])?;
            Ok(vec![copy(tape, new[used].tensor)?])
        });
    }
}

#[test]
fn writes_follow_one_another_in_one_history() {
    let case = case(4, 7, 33).tracked("z", [7, 33]).tracked("more", [7, 5]);
    case.check(F32, |tape, x| {
        let history = tape.history("history", 7, 33);
        let first = dual_write(tape, history, None, x["gates"], x["y"])?;
        let second = dual_write(tape, history, Some(first), x["more"], x["z"])?;
        // Streams exchanged, gates used a second time, and the first partial read by something else as well.
        let third = dual_write(
            tape,
            history,
            Some([second[1], first[0]]),
            x["gates"],
            x["y"],
        )?;
        let mut out = copies(tape, third)?;
        out.push(copy(tape, first[0].tensor)?);
        Ok(out)
    });
}

#[test]
fn inputs_without_a_gradient_are_left_alone() {
    for tracked in ["gates", "y", "p0", "p1"] {
        let mut case = Case::seeded(5);
        for (name, width) in [("gates", 5), ("y", 9), ("p0", 9), ("p1", 9)] {
            case = if name == tracked {
                case.tracked(name, [7, width])
            } else {
                case.plain(name, [7, width])
            };
        }
        case.check(F32, |tape, x| update(tape, x, 7, 9));
    }
}

/// I12 of the routing notes: what the transport does at its ends and in the middle.
#[test]
fn rho_one_keeps_rho_zero_swaps_and_one_half_merges() {
    let (rows, dim) = (7, 33);
    let run = |rho: f64| {
        let gates = [0.5, 0.5, rho, 0.0, 0.0].repeat(rows as usize);
        let case = Case::seeded(6)
            .tracked("gates", [rows, 5])
            .values(&gates)
            .tracked("y", [rows, dim])
            .tracked("p0", [rows, dim])
            .tracked("p1", [rows, dim]);
        let (p0, p1) = (case.input("p0").to_vec(), case.input("p1").to_vec());
        let runs = executors()
            .into_iter()
            .map(|(name, executor)| {
                let outcome = case.run_on(executor, |tape, x| update(tape, x, rows, dim));
                (name, outcome["out.0"].clone(), outcome["out.1"].clone())
            })
            .collect::<Vec<_>>();
        (p0, p1, runs)
    };
    let (p0, p1, runs) = run(1.0);
    for (name, new0, new1) in runs {
        assert_close(&format!("{name}, kept 0"), &new0, &p0, F32);
        assert_close(&format!("{name}, kept 1"), &new1, &p1, F32);
    }
    let (p0, p1, runs) = run(0.0);
    for (name, new0, new1) in runs {
        assert_close(&format!("{name}, swapped 0"), &new0, &p1, F32);
        assert_close(&format!("{name}, swapped 1"), &new1, &p0, F32);
    }
    let (.., runs) = run(0.5);
    for (name, new0, new1) in runs {
        assert_close(&format!("{name}, merged"), &new0, &new1, EXACT);
    }
}

#[test]
fn wrong_shapes_are_refused_by_name() {
    case(7, 2, 3).oracle(|tape, x| {
        let history = tape.history("history", 2, 3);
        let error = dual_write(tape, history, None, x["gates"], x["gates"]);
        let message = error.expect_err("y is gates").to_string();
        assert_eq!(message, "dual_write: y has shape [2, 5], expected [2, 3]");
        let error = dual_write(tape, history, None, x["y"], x["y"]);
        let message = error.expect_err("gates are y").to_string();
        assert_eq!(
            message,
            "dual_write: gates has shape [2, 3], expected [2, 5]"
        );
        Ok(vec![copy(tape, x["y"])?])
    });
}
