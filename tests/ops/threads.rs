//! The CPU executor gives the same bits for any number of threads.

use braid_engine::Result;
use braid_engine::cpu::CpuExecutor;
use braid_engine::ops::cross_entropy::cross_entropy;
use braid_engine::ops::embedding::embedding;
use braid_engine::ops::matmul::linear;
use braid_engine::ops::rms_norm::rms_norm;
use braid_engine::ops::rope::{rope, rope_tables};
use braid_engine::ops::swiglu::swiglu;
use braid_engine::tape::{Tape, Tensor};
use braid_tests::{Case, EXACT, Inputs, compare};

/// A feed-forward model with a rotation, large enough that every op is cut into pieces.
fn model(tape: &mut Tape, x: &Inputs) -> Result<Vec<Tensor>> {
    let rows = embedding(tape, x["ids"], x["table"])?;
    let tables = rope_tables(tape, 300, 96, 10_000.0);
    let heads = tape.reshape(rows, [4, 300, 1, 96]);
    let turned = rope(tape, heads, &tables)?;
    let normed = rms_norm(tape, turned, x["gain"], 1e-6)?;
    let gate = linear(tape, normed, x["gate"])?;
    let up = linear(tape, normed, x["up"])?;
    let inner = swiglu(tape, gate, up)?;
    let out = linear(tape, inner, x["down"])?;
    let logits = linear(tape, out, x["table"])?;
    Ok(vec![cross_entropy(tape, logits, x["labels"], 1.0)?.loss])
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    let case = Case::seeded(1)
        .ints("ids", [1200], 65)
        .ints("labels", [1200], 65)
        .parameter("table", [65, 96])
        .parameter("gain", [96])
        .parameter("gate", [130, 96])
        .parameter("up", [130, 96])
        .parameter("down", [96, 130]);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.expect("threads start");
        pool.install(|| case.run_on(Box::new(CpuExecutor::<f32>::new(None)), model))
    };
    let one = run(1);
    for threads in [2, 3, 8] {
        compare(&format!("{threads} threads"), &run(threads), &one, EXACT);
    }
}
