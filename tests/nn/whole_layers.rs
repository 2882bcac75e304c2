//! DenseFormer and transparent attention: tests T-DF-1 and 2 and those of section 4 of the notes on residual mechanisms, and
//! golden vector G6.

use braid_engine::Result;
use braid_engine::models::config::ModelConfig;
use braid_engine::nn::residual::dense_former::{parameters, sources};
use braid_engine::ops::add::add;
use braid_engine::ops::matmul::linear;
use braid_engine::tape::{Tape, Tensor};
use braid_tests::net::Net;
use braid_tests::vectors::w;
use braid_tests::{Case, Inputs, Outcome, assert_close, executors, oracle};

fn dense_former(dilation: u32, period: u32) -> String {
    format!(r#"{{"kind": "dense_former", "dilation": {dilation}, "period": {period}}}"#)
}

/// T-DF-1: zero times a number is zero and one times it is itself, so the start is the standard model to the bit.
#[test]
fn dense_former_starts_as_the_standard_model_to_the_bit() {
    for (dilation, period) in [(1, 1), (2, 1), (2, 2)] {
        let net = Net::initial(&dense_former(dilation, period), 4, 5);
        let standard = Net::initial(r#"{"kind": "standard"}"#, 4, 5);
        let pairs = executors().into_iter().zip(executors());
        let pairs = pairs.map(|((name, one), (_, two))| (name, one, two));
        for (name, one, two) in pairs.chain([("oracle", oracle(), oracle())]) {
            let (got, want) = (net.run_on(one), standard.run_on(two));
            // Not by bits: a zero may have another sign.
            assert_eq!(got["logits"], want["logits"], "{name}");
            for (tensor, want) in want.iter().filter(|(name, _)| name.starts_with("grad.")) {
                assert_close(&format!("{name}: {tensor}"), &got[tensor], want, 1e-5);
            }
        }
    }
}

/// T-DF-2: which layer outputs are averaged.
#[test]
fn dilation_counts_back_from_the_newest_layer() {
    assert_eq!(sources(1, 2), [1]);
    assert_eq!(sources(2, 2), [0, 2]);
    assert_eq!(sources(3, 2), [1, 3]);
    assert_eq!(sources(4, 2), [0, 2, 4]);
    let net = Net::initial(&dense_former(4, 5), 12, 1);
    let read: Vec<(u32, Vec<String>)> = net
        .routing()
        .into_iter()
        .map(|routing| (routing.site, routing.sources))
        .collect();
    let names = |layers: &[u32]| layers.iter().map(|i| format!("layer {i}")).collect();
    assert_eq!(read, [(10, names(&[1, 5])), (20, names(&[2, 6, 10]))]);
}

/// T-DF-2: the numbers of weights that the paper's section gives.
#[test]
fn dense_former_has_as_many_weights_as_the_paper_says() {
    for (layers, expected) in [(12, 90), (48, 1224)] {
        let config = ModelConfig {
            num_hidden_layers: layers,
            ..Net::initial(r#"{"kind": "standard"}"#, 1, 1).config
        };
        let count: usize = parameters(&config, 1, 1)
            .iter()
            .map(|spec| spec.shape.len())
            .sum();
        assert_eq!(count, expected, "{layers} layers");
    }
}

#[test]
fn equal_logits_are_the_fixed_mean() {
    let learned = Net::initial(r#"{"kind": "transparent"}"#, 3, 2);
    let mean = Net::initial(r#"{"kind": "transparent", "weights": "mean"}"#, 3, 2);
    assert_eq!(mean.parameters.routing_count(), 0);
    let (got, want) = (learned.run(), mean.run());
    for (name, want) in &want {
        assert_eq!(&got[name], want, "{name}");
    }
    // `recent` is near the standard model, and not it.
    let recent = Net::initial(r#"{"kind": "transparent", "init": "recent"}"#, 3, 2).run();
    let standard = Net::initial(r#"{"kind": "standard"}"#, 3, 2).run();
    let off = |outcome: &Outcome| {
        let pairs = outcome["logits"].iter().zip(&standard["logits"]);
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    assert!(off(&recent) > 1e-6 && off(&recent) < 0.3 * off(&got));
}

#[test]
fn a_constant_in_all_logits_changes_nothing_and_their_gradients_sum_to_zero() {
    let mut net = Net::random(r#"{"kind": "transparent"}"#, 3, 3);
    let before = net.run();
    net.set_all("depth_logits", |_, v| v + 2.5);
    let after = net.run();
    assert_close("logits", &after["logits"], &before["logits"], 1e-11);
    for spec in net.parameters.specs() {
        if spec.name.ends_with("depth_logits") {
            let gradient = &before[&format!("grad.{}", spec.name)];
            let sum: f64 = gradient.iter().sum();
            assert!(sum.abs() < 1e-12, "{}: {sum}", spec.name);
            // The first mix has one source: its logit does nothing.
            let alive = gradient.iter().any(|v| v.abs() > 1e-6);
            assert_eq!(alive, gradient.len() > 1, "{}: {gradient:?}", spec.name);
        }
    }
}

const WIDTH: usize = 4;
const LAYERS: usize = 3;

/// `e`, the outputs of three layers, and the gradient that reaches each `Y_0 .. Y_3` from where it is read.
fn g6_case(outputs: &[Vec<f64>], seeds: &[Vec<f64>]) -> Case {
    let shape = [1, WIDTH as u32];
    let mut case = Case::seeded(1)
        .tracked("e", shape)
        .values(&w(109, WIDTH))
        .tracked("factor", [1]);
    for (i, output) in outputs.iter().enumerate() {
        let mut weights: Vec<f64> = w(121 + i as u32, i + 2).iter().map(|v| 0.1 * v).collect();
        weights[i + 1] += 1.0;
        case = case
            .tracked(&format!("y{}", i + 1), shape)
            .values(output)
            .parameter(&format!("model.layers.{i}.dwa.weight"), [i as u32 + 2])
            .values(&weights);
    }
    for (i, seed) in seeds.iter().enumerate() {
        case = case.plain(&format!("seed{i}"), shape).values(seed);
    }
    case
}

fn g6_record(tape: &mut Tape, x: &Inputs) -> Result<Vec<Tensor>> {
    let config = ModelConfig::from_json(
        r#"{"vocab_size": 2, "hidden_size": 4, "intermediate_size": 2, "num_hidden_layers": 3,
            "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 2, "residual": {"kind": "dense_former"}}"#,
    )?;
    let mut path = config.residual.path(tape, &config, 1)?;
    // A fresh tensor, as the embedding is.
    let zero = tape.constant("zero", [1, WIDTH as u32], vec![0.0; WIDTH]);
    let e = add(tape, x["e"], zero)?;
    path.expand(tape, e)?;
    // The sum of <Y_i, seed i>, and a summand that gets the factor of all gradients.
    let mut sum = x["factor"];
    for i in 0..=LAYERS {
        let site = 2 * i as u32;
        let read = if i == LAYERS {
            path.readout(tape)?
        } else {
            path.read(tape, site)?
        };
        tape.output(&format!("Y{i}"), read);
        let product = linear(tape, read, x[&*format!("seed{i}")])?;
        sum = add(tape, product, sum)?;
        if i < LAYERS {
            // One function a layer, as the vector has: the attention gives nothing.
            path.write(tape, site, zero)?;
            path.read(tape, site + 1)?;
            path.write(tape, site + 1, x[&*format!("y{}", i + 1)])?;
        }
    }
    Ok(vec![sum])
}

/// G6: layers `B_i(x) = x + tanh(x W_i)`. The engine has no tanh of a matrix product, so the test computes it: forward it
/// finds the outputs layer by layer, backward it hands each layer's gradient to the mix before it.
#[test]
fn g6_three_layers_of_dense_former() {
    let weight = |i: usize| -> Vec<f64> {
        w(109 + i as u32, WIDTH * WIDTH)
            .iter()
            .map(|v| 0.7 * v)
            .collect()
    };
    let tanh = |i: usize, x: &[f64]| -> Vec<f64> {
        let weight = weight(i);
        (0..WIDTH)
            .map(|o| {
                (0..WIDTH)
                    .map(|c| x[c] * weight[c * WIDTH + o])
                    .sum::<f64>()
            })
            .map(f64::tanh)
            .collect()
    };
    let mut outputs = vec![vec![0.0; WIDTH]; LAYERS];
    let mut seeds = vec![vec![0.0; WIDTH]; LAYERS + 1];
    seeds[LAYERS] = w(108, WIDTH);
    for i in 1..=LAYERS {
        let outcome = g6_case(&outputs, &seeds).oracle(g6_record);
        outputs[i - 1] = tanh(i, &outcome[&format!("Y{}", i - 1)]);
    }
    let gradient = |outcome: &Outcome, name: &str| -> Vec<f64> {
        let factor = outcome["grad.factor"][0];
        let values = outcome[&format!("grad.{name}")].iter();
        values.map(|v| v / factor).collect()
    };
    for i in (1..=LAYERS).rev() {
        let outcome = g6_case(&outputs, &seeds).oracle(g6_record);
        let (y, weight) = (&outputs[i - 1], weight(i));
        let slopes: Vec<f64> = gradient(&outcome, &format!("y{i}"))
            .iter()
            .zip(y)
            .map(|(dy, y)| dy * (1.0 - y * y))
            .collect();
        seeds[i - 1] = (0..WIDTH)
            .map(|c| {
                let row = &weight[c * WIDTH..][..WIDTH];
                row.iter().zip(&slopes).map(|(w, slope)| w * slope).sum()
            })
            .collect();
    }
    let outcome = g6_case(&outputs, &seeds).oracle(g6_record);
    let near = |what: &str, got: &[f64], want: &[f64]| {
        assert_eq!(got.len(), want.len(), "{what}");
        for (a, b) in got.iter().zip(want) {
            assert!((a - b).abs() < 1e-7, "{what}: {got:?}, expected {want:?}");
        }
    };
    near(
        "Y_3",
        &outcome["Y3"],
        &[0.7699250, -0.7757795, -1.3590682, -0.0796990],
    );
    near(
        "dX_0",
        &gradient(&outcome, "e"),
        &[-0.1324543, -0.1052053, -0.2854351, 0.0530544],
    );
    let weights = |i: usize| gradient(&outcome, &format!("model.layers.{}.dwa.weight", i - 1));
    near("da_1", &weights(1), &[-0.4976412, -0.0051087]);
    near("da_2", &weights(2), &[-0.4981929, -0.2994084, 0.0761759]);
    near(
        "da_3",
        &weights(3),
        &[-0.5577844, -0.4949439, -0.4033148, 0.2098565],
    );
}
