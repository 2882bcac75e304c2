//! Golden vectors G3 (one sublayer of mHC) and G4 (one of dynamic hyper-connections) of the notes on residual mechanisms,
//! through the mechanisms themselves.
//!
//! The vectors start with two different streams, and end with both. So the first site only brings the streams apart, the
//! second is the one that is tested, and the other two read one stream each.

use braid_engine::Result;
use braid_engine::models::config::ModelConfig;
use braid_engine::nn::residual::ResidualPath;
use braid_engine::ops::add::add;
use braid_engine::ops::matmul::linear;
use braid_engine::ops::rms_norm::rms_norm;
use braid_engine::tape::{Tape, Tensor};
use braid_tests::vectors::w;
use braid_tests::{Case, Inputs, Outcome};

/// Names of the sites.
const FIRST: &str = "model.layers.0.attn_";
const TESTED: &str = "model.layers.0.mlp_";
const LAST: [&str; 2] = ["model.layers.1.attn_", "model.layers.1.mlp_"];

fn near(what: &str, got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (a, b) in got.iter().zip(want) {
        assert!((a - b).abs() <= 1e-7, "{what}: {got:?}, expected {want:?}");
    }
}

/// The transpose of a matrix with this many columns.
fn transposed(matrix: &[f64], columns: usize) -> Vec<f64> {
    let column = |j: usize| matrix.iter().skip(j).step_by(columns).copied();
    (0..columns).flat_map(column).collect()
}

/// Inputs that all cases have: what site 0 gets (`e`) and gives (`y`), the sublayer's gain and weight, the weights of the
/// loss, and a summand that gets the factor of all gradients.
fn case(e: &[f64], y: &[f64], gain: &[f64], weight: &[f64], loss: &[f64]) -> Case {
    Case::seeded(1)
        .tracked("e", [1, 3])
        .values(e)
        .tracked("y", [1, 3])
        .values(y)
        .parameter("gain", [3])
        .values(gain)
        .parameter("weight", [3, 3])
        .values(&transposed(weight, 3))
        .parameter("loss", [2, 3])
        .values(loss)
        .tracked("factor", [1])
        .values(&[0.0])
}

/// Record the four sites; publishes everything that the vectors name.
fn record(residual: &str, tape: &mut Tape, x: &Inputs) -> Result<Vec<Tensor>> {
    let config = ModelConfig::from_json(&format!(
        r#"{{"vocab_size": 2, "hidden_size": 3, "intermediate_size": 2, "num_hidden_layers": 2,
            "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 2, "residual": {residual}}}"#
    ))?;
    let mut path: Box<dyn ResidualPath> = config.residual.path(tape, &config, 1)?;
    // A fresh tensor, as the embedding is.
    let zero = tape.constant("zero", [1, 3], vec![0.0; 3]);
    let e = add(tape, x["e"], zero)?;
    path.expand(tape, e)?;
    path.read(tape, 0)?;
    path.write(tape, 0, x["y"])?;
    let read = path.read(tape, 1)?;
    let normed = rms_norm(tape, read, x["gain"], 1e-6)?;
    let o = linear(tape, normed, x["weight"])?;
    path.write(tape, 1, o)?;
    let first = path.read(tape, 2)?;
    path.write(tape, 2, zero)?;
    let second = path.read(tape, 3)?;
    for (name, tensor) in [
        ("read", read),
        ("o", o),
        ("new 0", first),
        ("new 1", second),
    ] {
        tape.output(name, tensor);
    }
    // <first, loss row 0> + <second, loss row 1>: of the four products, the diagonal.
    let pick = |row: usize| {
        let mut content = vec![0.0; 2];
        content[row] = 1.0;
        content
    };
    let mut sum = None;
    for (row, stream) in [first, second].into_iter().enumerate() {
        let products = linear(tape, stream, x["loss"])?;
        let unit = tape.constant("unit", [1, 2], pick(row));
        let own = linear(tape, products, unit)?;
        sum = Some(match sum {
            Some(other) => add(tape, other, own)?,
            None => own,
        });
    }
    let sum = sum.unwrap_or(first);
    Ok(vec![add(tape, sum, x["factor"])?])
}

/// The loss, and a gradient without the factor.
fn loss(outcome: &Outcome) -> f64 {
    outcome["out.0"][0]
}

fn gradient(outcome: &Outcome, name: &str) -> Vec<f64> {
    let factor = outcome["grad.factor"][0];
    let values = outcome[&format!("grad.{name}")].iter();
    values.map(|v| v / factor).collect()
}

#[test]
fn g3_a_sublayer_of_mhc() {
    let (x, b) = (w(11, 6), w(13, 8));
    let y: Vec<f64> = (0..3).map(|c| x[3 + c] - x[c]).collect();
    let gain: Vec<f64> = w(14, 3).iter().map(|v| 1.0 + 0.1 * v).collect();
    let mut case = case(&x[..3], &y, &gain, &w(15, 9), &w(16, 6));
    // Write 0 and 1: the streams become e and e + y. Read the one or the other; mix with the identity.
    let mut still = vec![0.0, 0.0, -40.0, 0.0, 30.0, -30.0, -30.0, 30.0];
    let reads = [[40.0, -40.0], [-40.0, 40.0]];
    for (site, pre) in [(FIRST, reads[0]), (LAST[0], reads[0]), (LAST[1], reads[1])] {
        still[..2].copy_from_slice(&pre);
        case = case
            .parameter(&format!("{site}mhc.phi.weight"), [8, 6])
            .values(&[0.0; 48])
            .parameter(&format!("{site}mhc.bias"), [8])
            .values(&still)
            .parameter(&format!("{site}mhc.alpha"), [3])
            .values(&[0.0; 3]);
    }
    let case = case
        .parameter(&format!("{TESTED}mhc.phi.weight"), [8, 6])
        .values(&transposed(&w(12, 48), 8))
        .parameter(&format!("{TESTED}mhc.bias"), [8])
        .values(&b)
        .parameter(&format!("{TESTED}mhc.alpha"), [3])
        .values(&[0.5, 0.4, 0.3]);
    let outcome = case.oracle(|tape, x| record(r#"{"kind": "mhc", "streams": 2}"#, tape, x));

    near("y", &outcome["read"], &[0.2505579, -0.6596249, 0.2676232]);
    near("o", &outcome["o"], &[-1.2389524, 1.9178782, 1.1184231]);
    near(
        "X' 0",
        &outcome["new 0"],
        &[-0.6516132, 0.8693659, 1.2348169],
    );
    near(
        "X' 1",
        &outcome["new 1"],
        &[-0.2559142, 0.5422446, 0.8923768],
    );
    near("loss", &[loss(&outcome)], &[-1.485388824]);
    // e is in both streams, y in the second.
    let (de, dy) = (gradient(&outcome, "e"), gradient(&outcome, "y"));
    near("dX 1", &dy, &[-0.4770631, -0.8945270, -0.0164016]);
    let dx: Vec<f64> = de.iter().zip(&dy).map(|(e, y)| e - y).collect();
    near("dX 0", &dx, &[0.2870256, -0.2955564, 0.2110221]);
    let own = |name: &str| gradient(&outcome, &format!("{TESTED}mhc.{name}"));
    near("dalpha", &own("alpha"), &[0.2988255, 0.3837240, -0.2700120]);
    let want = [
        0.0752867, -0.1548854, -0.7699515, -0.4803121, -0.0956347, 0.0956347, 0.0956347, -0.0956347,
    ];
    near("db", &own("bias"), &want);
    let want = [
        0.0097596, -0.0200782, -0.0798488, -0.0498114, -0.0074384, 0.0074384, 0.0074384, -0.0074384,
    ];
    near("dphi", &transposed(&own("phi.weight"), 6)[..8], &want);
}

#[test]
fn g4_a_sublayer_of_dynamic_hyper_connections() {
    let h = w(21, 6);
    // The vector's norm has a gain, which is absorbed in the weights.
    let gain: Vec<f64> = w(27, 3).iter().map(|v| 1.0 + 0.1 * v).collect();
    let absorbed = |weights: &[f64]| -> Vec<f64> {
        let gains = gain.iter().cycle();
        weights.iter().zip(gains).map(|(w, g)| w * g).collect()
    };
    let mut case = case(&h[..3], &h[3..], &[1.0; 3], &w(25, 9), &w(26, 6));
    let identity = [1.0, 0.0, 0.0, 1.0];
    // The first site gives stream 0 to e and stream 1 to y; the last two read one stream each and change nothing.
    let sites = [
        (FIRST, [1.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 1.0]),
        (TESTED, [1.0, 0.0], identity, [1.0, 1.0]),
        (LAST[0], [1.0, 0.0], identity, [0.0, 0.0]),
        (LAST[1], [0.0, 1.0], identity, [0.0, 0.0]),
    ];
    for (site, read, mix, write) in sites {
        let tested = if site == TESTED { 1.0 } else { 0.0 };
        let weights = |values: Vec<f64>| -> Vec<f64> {
            absorbed(&values).iter().map(|v| v * tested).collect()
        };
        case = case
            .parameter(&format!("{site}hc.read.bias"), [2])
            .values(&read)
            .parameter(&format!("{site}hc.mix.bias"), [2, 2])
            .values(&mix)
            .parameter(&format!("{site}hc.write.bias"), [2])
            .values(&write)
            .parameter(&format!("{site}hc.read.weight"), [1, 3])
            .values(&weights(w(23, 3)))
            .parameter(&format!("{site}hc.mix.weight"), [2, 3])
            .values(&weights(transposed(&w(24, 6), 2)))
            .parameter(&format!("{site}hc.write.weight"), [1, 3])
            .values(&weights(w(22, 3)))
            .parameter(&format!("{site}hc.read_mix_scale"), [1])
            .values(&[0.3 * tested])
            .parameter(&format!("{site}hc.write_scale"), [1])
            .values(&[0.2 * tested]);
    }
    let residual = r#"{"kind": "hyper_connections", "streams": 2}"#;
    let outcome = case.oracle(|tape, x| record(residual, tape, x));

    near("h0", &outcome["read"], &[-0.6469386, 0.7967798, 0.7001947]);
    near("o", &outcome["o"], &[-0.9633773, -0.2422764, 2.1328586]);
    near(
        "H' 0",
        &outcome["new 0"],
        &[-1.5728945, 0.6131430, 2.9850758],
    );
    near(
        "H' 1",
        &outcome["new 1"],
        &[-1.1153364, 0.2125514, 1.6959578],
    );
    near("loss", &[loss(&outcome)], &[1.805843876]);
    near(
        "dH 0",
        &gradient(&outcome, "e"),
        &[-0.4467889, -1.3677467, 1.2453538],
    );
    near(
        "dH 1",
        &gradient(&outcome, "y"),
        &[-0.5083482, 0.3236368, -0.4079365],
    );
    let own = |name: &str| gradient(&outcome, &format!("{TESTED}hc.{name}"));
    near("ds_a", &own("read_mix_scale"), &[0.1590582]);
    near("ds_b", &own("write_scale"), &[-0.9931734]);
    near(
        "dW_b",
        &absorbed(&own("write.weight")),
        &[-0.1888479, 0.1494312, 0.3727035],
    );
    near(
        "dW_m",
        &absorbed(&own("read.weight")),
        &[-0.0148212, 0.0125937, 0.0257401],
    );
    let want = [
        -0.0647360, -0.0082983, 0.0508991, 0.0335281, 0.1290786, -0.0929148,
    ];
    near("dW_r", &transposed(&absorbed(&own("mix.weight")), 3), &want);
}
