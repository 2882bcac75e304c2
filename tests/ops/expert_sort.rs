use braid_engine::ops::copy::copy;
use braid_engine::ops::expert_sort::{TILE, expert_sort};
use braid_engine::random::{below, stream};
use braid_tests::{Case, Outcome, executors, oracle};

const NONE: f64 = u32::MAX as f64;

fn sort(case: &Case, experts: u32, executor: Box<dyn braid_engine::executor::Executor>) -> Outcome {
    case.run_on(executor, |tape, x| {
        let sorted = expert_sort(tape, x["chosen"], experts)?;
        for (name, tensor) in [
            ("places", sorted.places),
            ("slot_row", sorted.slot_row),
            ("row_pair", sorted.row_pair),
            ("tile_expert", sorted.tile_expert),
        ] {
            tape.output(name, tensor);
        }
        // Something has to have a gradient.
        Ok(vec![copy(tape, x["x"])?])
    })
}

/// What the sort has to give, one choice after the other.
fn expected(chosen: &[f64], experts: usize) -> [Vec<f64>; 4] {
    let tile = TILE as usize;
    let rows = tile * (chosen.len().div_ceil(tile) + experts);
    let (mut places, mut slot_row) = (vec![0.0; 2 * experts], vec![0.0; chosen.len()]);
    let (mut row_pair, mut tile_expert) = (vec![NONE; rows], vec![NONE; rows / tile]);
    let mut next = 0;
    for expert in 0..experts {
        places[experts + expert] = next as f64;
        let own = chosen
            .iter()
            .enumerate()
            .filter(|&(_, &e)| e == expert as f64);
        let mut row = next;
        for (pair, _) in own {
            (slot_row[pair], row_pair[row]) = (row as f64, pair as f64);
            row += 1;
        }
        places[expert] = (row - next) as f64;
        let end = row.next_multiple_of(tile);
        tile_expert[next / tile..end / tile].fill(expert as f64);
        next = end;
    }
    [places, slot_row, row_pair, tile_expert]
}

fn check(chosen: &[f64], top_k: u32, experts: u32) {
    let case = Case::seeded(1)
        .tracked("x", [1])
        .ints("chosen", [chosen.len() as u32 / top_k, top_k], experts)
        .values(chosen);
    let want = expected(chosen, experts as usize);
    let mut all = executors();
    all.push(("f64", oracle()));
    for (name, executor) in all {
        let outcome = sort(&case, experts, executor);
        for (tensor, want) in ["places", "slot_row", "row_pair", "tile_expert"]
            .iter()
            .zip(&want)
        {
            let count = chosen.len();
            assert_eq!(
                &outcome[*tensor], want,
                "{name}: {tensor}, {count} choices of {experts}"
            );
        }
    }
}

#[test]
fn every_choice_gets_its_row() {
    for (seed, (pairs, top_k, experts)) in [
        (1, 1, 1),
        (2, 2, 7),
        (16, 1, 1),
        (17, 1, 2),
        (255, 1, 4),
        (256, 2, 8),
        (257, 1, 3),
        (1000, 4, 6),
        (6000, 2, 256),
    ]
    .into_iter()
    .enumerate()
    {
        let mut rng = stream(seed as u64, "choices");
        let choices = (0..pairs).map(|_| below(&mut rng, experts) as f64);
        check(&choices.collect::<Vec<_>>(), top_k, experts as u32);
    }
}

#[test]
fn one_expert_may_have_everything_and_others_nothing() {
    for only in [0, 2, 4] {
        check(&[f64::from(only); 300], 1, 5);
    }
}
