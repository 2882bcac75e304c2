use braid_engine::ops::embedding::embedding;
use braid_engine::ops::matmul::linear;
use braid_engine::tape::Tape;
use braid_tests::{Case, F32, F32_LONG, Inputs, compare, executors, gpu_executor};

const SIZES: [u32; 8] = [1, 3, 17, 31, 33, 64, 65, 127];

#[test]
fn agrees_everywhere() {
    // Every size once as rows, once as inputs and once as outputs, in different company each time.
    for (seed, &rows) in SIZES.iter().enumerate() {
        for shift in [0, 3] {
            let inputs = SIZES[(seed * 3 + shift) % 8];
            let outputs = SIZES[(seed * 5 + 2 * shift + 1) % 8];
            let case = Case::seeded(seed as u64)
                .tracked("x", [rows, inputs])
                .parameter("weight", [outputs, inputs]);
            case.check(F32, |tape, x| Ok(vec![linear(tape, x["x"], x["weight"])?]));
        }
    }
}

#[test]
fn agrees_for_vectors_of_four_with_whole_and_cut_tiles() {
    for (seed, [rows, inputs, outputs]) in [
        [96, 128, 64],
        [70, 64, 65],
        [7, 96, 128],
        [8, 8, 8],
        [1, 4, 4],
        [9, 12, 20],
        [17, 20, 12],
        // Large enough to be cut into pieces.
        [300, 65, 127],
    ]
    .into_iter()
    .enumerate()
    {
        let case = Case::seeded(seed as u64)
            .tracked("x", [rows, inputs])
            .parameter("weight", [outputs, inputs]);
        case.check(F32, |tape, x| Ok(vec![linear(tape, x["x"], x["weight"])?]));
    }
}

#[test]
fn large_tiles_compute_the_same() {
    for (seed, [rows, inputs, outputs]) in [
        [16, 16, 16],
        [17, 20, 36],
        [96, 128, 64],
        [70, 64, 65],
        [33, 28, 52],
        // One above the number of terms in a slab.
        [1025, 16, 20],
    ]
    .into_iter()
    .enumerate()
    {
        let Some(gpu) = gpu_executor() else { return };
        let case = Case::seeded(seed as u64)
            .tracked("x", [rows, inputs])
            .parameter("weight", [outputs, inputs]);
        // Twice, so that gradients are added to, too.
        let record = |tape: &mut Tape, x: &Inputs| {
            Ok(vec![
                linear(tape, x["x"], x["weight"])?,
                linear(tape, x["x"], x["weight"])?,
            ])
        };
        let want = case.oracle(record);
        let got = case.run_on(Box::new(gpu.large_tiles(true)), record);
        let what = format!("large tiles, {rows} x {inputs} x {outputs}");
        compare(&what, &got, &want, F32_LONG);
    }
}

#[test]
fn leading_dimensions_are_rows_and_a_weight_need_not_be_a_parameter() {
    let case = Case::seeded(1)
        .tracked("x", [2, 3, 5, 17])
        .tracked("weight", [33, 17]);
    case.check(F32, |tape, x| Ok(vec![linear(tape, x["x"], x["weight"])?]));
}

#[test]
fn a_weight_may_be_the_embedding_table() {
    let case = Case::seeded(1)
        .ints("ids", [31], 33)
        .parameter("table", [33, 17]);
    case.check(F32, |tape, x| {
        let rows = embedding(tape, x["ids"], x["table"])?;
        Ok(vec![linear(tape, rows, x["table"])?])
    });
}

#[test]
fn a_product_with_itself_adds_both_gradients() {
    let case = Case::seeded(1).tracked("x", [17, 17]);
    case.check(F32, |tape, x| Ok(vec![linear(tape, x["x"], x["x"])?]));
}

#[test]
fn many_tokens_are_summed_in_slabs() {
    for (rows, inputs, outputs) in [(1024, 5, 3), (1025, 5, 3), (2500, 5, 3), (2500, 12, 4)] {
        let case = Case::seeded(1)
            .tracked("x", [rows, inputs])
            .parameter("weight", [outputs, inputs]);
        // 1024 products are summed in one chain here.
        case.check(F32_LONG, |tape, x| {
            Ok(vec![linear(tape, x["x"], x["weight"])?])
        });
    }
}

#[test]
fn large_products_in_slabs_and_pieces_agree() {
    let case = Case::seeded(1)
        .tracked("x", [1100, 65])
        .parameter("weight", [300, 65]);
    let record = |tape: &mut braid_engine::tape::Tape, x: &braid_tests::Inputs| {
        Ok(vec![linear(tape, x["x"], x["weight"])?])
    };
    let want = case.oracle(record);
    for (name, executor) in executors() {
        compare(name, &case.run_on(executor, record), &want, F32_LONG);
    }
}

#[test]
fn a_weight_of_another_width_is_refused() {
    let refused = std::panic::catch_unwind(|| {
        Case::seeded(1)
            .plain("x", [2, 3])
            .parameter("weight", [4, 5])
            .oracle(|tape, x| Ok(vec![linear(tape, x["x"], x["weight"])?]))
    });
    assert!(refused.is_err());
}
