//! Hyper-connections and mHC: tests T-HC-1 to 5 and T-mHC-1, 5 and 8 of the notes on residual mechanisms, as far as they
//! are statements about whole models, and the initial values of mHC.

use braid_engine::analysis::routing_stats::site_stats;
use braid_engine::models::plans::{self, ModelPlan};
use braid_engine::nn::rms_norm::norm;
use braid_engine::nn::{attention, swiglu};
use braid_engine::ops::add::add;
use braid_engine::ops::embedding::embedding;
use braid_engine::ops::matmul::linear;
use braid_engine::ops::rope::rope_tables;
use braid_engine::plan::External;
use braid_engine::runtime::Runtime;
use braid_engine::tape::Tape;
use braid_tests::net::{Net, Outcome};
use braid_tests::{EXACT, assert_close, executors, oracle};

/// An eps that does not show.
const NO_EPS: f64 = 1e-12;

fn hyper(streams: u32, dynamic: bool) -> String {
    format!(r#"{{"kind": "hyper_connections", "streams": {streams}, "dynamic": {dynamic}}}"#)
}

fn mhc(streams: u32) -> String {
    format!(r#"{{"kind": "mhc", "streams": {streams}}}"#)
}

/// The standard model with the base weights, the batch and the eps of `of`.
fn baseline(of: &Net) -> Net {
    let mut net = Net::initial(r#"{"kind": "standard"}"#, of.config.num_hidden_layers, 1);
    net.share(of);
    (net.ids, net.labels) = (of.ids.clone(), of.labels.clone());
    net.config.rms_norm_eps = of.config.rms_norm_eps;
    net
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most, v| most.max(v.abs()))
}

fn largest_gradient(outcome: &Outcome) -> f64 {
    let grads = outcome.iter().filter(|(name, _)| name.starts_with("grad."));
    grads.map(|(_, v)| largest(v)).fold(0.0, f64::max)
}

/// T-HC-1: equal streams stay equal to the standard stream.
#[test]
fn hyper_connections_start_as_the_standard_model() {
    for (streams, dynamic) in [(2, false), (3, true), (4, true), (8, true)] {
        let mut net = Net::initial(&hyper(streams, dynamic), 3, 1);
        net.config.rms_norm_eps = NO_EPS;
        let (got, want) = (net.run(), baseline(&net).run());
        assert_close(
            &hyper(streams, dynamic),
            &got["logits"],
            &want["logits"],
            1e-9,
        );
    }
}

/// T-HC-2: one stream with static connections is the standard model, to the bit.
#[test]
fn one_static_stream_is_the_standard_model() {
    let net = Net::initial(&hyper(1, false), 3, 2);
    let standard = baseline(&net);
    assert_close(
        "oracle",
        &net.run()["logits"],
        &standard.run()["logits"],
        EXACT,
    );
    for ((name, one), (_, two)) in executors().into_iter().zip(executors()) {
        let (got, want) = (net.run_on(one), standard.run_on(two));
        assert_close(name, &got["logits"], &want["logits"], EXACT);
    }
}

/// Logits of a model whose attention and feed-forward of a layer read the same stream: `x <- x + F_k(x) + F_(k+1)(x)`.
fn parallel_layers(net: &Net) -> Vec<f64> {
    let (config, eps) = (&net.config, net.config.rms_norm_eps);
    let mut tape = Tape::new(net.parameters.clone());
    let ids = tape.input_ints(plans::IDS, [net.batch.rows()]);
    let tables = rope_tables(
        &mut tape,
        net.batch.context,
        config.head_dim,
        config.rope_theta,
    );
    let mut record = || {
        let table = tape.parameter("model.embed_tokens.weight")?;
        let mut x = embedding(&mut tape, ids, table)?;
        for layer in 0..config.num_hidden_layers {
            let prefix = format!("model.layers.{layer}.");
            let gain = format!("{prefix}input_layernorm.weight");
            let read = norm(&mut tape, &gain, x, eps)?;
            let attended = attention::forward(&mut tape, config, layer, net.batch, &tables, read)?;
            let gain = format!("{prefix}post_attention_layernorm.weight");
            let read = norm(&mut tape, &gain, x, eps)?;
            let fed = swiglu::forward(&mut tape, &format!("{prefix}mlp."), read)?;
            x = add(&mut tape, x, attended)?;
            x = add(&mut tape, x, fed)?;
        }
        let out = norm(&mut tape, "model.norm.weight", x, eps)?;
        linear(&mut tape, out, table)
    };
    let logits = record().expect("records");
    tape.output(plans::LOGITS, logits);
    let mut runtime = Runtime::new(oracle(), net.parameters.clone()).expect("fits");
    let plan = ModelPlan {
        plan: tape.finish(&runtime.limits()).expect("fits"),
        batch: net.batch,
        routing: Vec::new(),
        gates: Vec::new(),
        experts: Vec::new(),
        states: braid_engine::nn::residual::States::default(),
    };
    let loaded = runtime.load_model(&plan).expect("loads");
    let values = braid_engine::executor::Data::F64(&net.values);
    runtime
        .write_external(External::Values, values)
        .expect("fits");
    runtime
        .write_batch(&loaded, &net.ids, &net.labels)
        .expect("fits");
    runtime.submit(false, &[&loaded]).expect("runs");
    let names = [plans::LOGITS.to_owned()];
    pollster::block_on(runtime.read(&loaded, &names)).expect("reads")[0].to_f64()
}

/// T-HC-3: with two streams, attention and feed-forward can stand side by side.
#[test]
fn two_static_streams_can_be_wired_in_parallel() {
    let mut net = Net::initial(&hyper(2, false), 2, 3);
    net.config.rms_norm_eps = NO_EPS;
    let wire = |net: &mut Net, name: &str, values: &[f64]| net.set_all(name, |k, _| values[k]);
    wire(&mut net, "attn_hc.read.bias", &[1.0, 0.0]);
    wire(&mut net, "attn_hc.write.bias", &[1.0, 0.0]);
    wire(&mut net, "attn_hc.mix.bias", &[1.0, 0.0, 0.0, 1.0]);
    wire(&mut net, "mlp_hc.read.bias", &[0.0, 1.0]);
    wire(&mut net, "mlp_hc.write.bias", &[1.0, 1.0]);
    wire(&mut net, "mlp_hc.mix.bias", &[1.0, 1.0, 0.0, 0.0]);
    let logits = &net.run()["logits"];
    assert_close("logits", logits, &parallel_layers(&net), 1e-9);
    let apart = assert_apart(logits, &baseline(&net).run()["logits"]);
    assert!(apart > 1e-2, "the wiring changes the function: {apart:.1e}");
}

fn assert_apart(a: &[f64], b: &[f64]) -> f64 {
    let off: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    largest(&off)
}

/// Where stream `i` goes when streams are renamed.
const ORDER: [usize; 3] = [2, 0, 1];

/// T-HC-5: the names of the streams do not matter.
#[test]
fn hyper_connections_are_equivariant_to_the_order_of_streams() {
    let net = Net::random(&hyper(3, true), 2, 4);
    let mut renamed = net.clone();
    let d = net.config.hidden_size as usize;
    for spec in net.parameters.specs() {
        let old = net.get(&spec.name).to_vec();
        let name = &spec.name;
        if name.ends_with("hc.read.bias") || name.ends_with("hc.write.bias") {
            renamed.set(name, |k, _| old[ORDER[k]]);
        } else if name.ends_with("hc.mix.bias") {
            renamed.set(name, |k, _| old[ORDER[k / 3] * 3 + ORDER[k % 3]]);
        } else if name.ends_with("hc.mix.weight") {
            renamed.set(name, |k, _| old[ORDER[k / d] * d + k % d]);
        }
    }
    assert_ne!(net.values, renamed.values);
    let (got, want) = (renamed.run(), net.run());
    assert_close("logits", &got["logits"], &want["logits"], 1e-12);
}

/// T-mHC-8, the same for mHC.
#[test]
fn mhc_is_equivariant_to_the_order_of_streams() {
    let net = Net::random(&mhc(3), 2, 5);
    let mut renamed = net.clone();
    let d = net.config.hidden_size as usize;
    let row = |k: usize| match k {
        0..3 => ORDER[k],
        3..6 => 3 + ORDER[k - 3],
        _ => 6 + ORDER[(k - 6) / 3] * 3 + ORDER[(k - 6) % 3],
    };
    for spec in net.parameters.specs() {
        let old = net.get(&spec.name).to_vec();
        if spec.name.ends_with("mhc.bias") {
            renamed.set(&spec.name, |k, _| old[row(k)]);
        } else if spec.name.ends_with("mhc.phi.weight") {
            renamed.set(&spec.name, |k, _| {
                let (out, column) = (k / (3 * d), k % (3 * d));
                old[row(out) * 3 * d + ORDER[column / d] * d + column % d]
            });
        }
    }
    assert_ne!(net.values, renamed.values);
    let (got, want) = (renamed.run(), net.run());
    assert_close("logits", &got["logits"], &want["logits"], 1e-12);
}

/// T-mHC-1, fact 1: with `phi` and the write biases at zero, any other biases give the standard model.
#[test]
fn mhc_with_equal_streams_is_the_standard_model() {
    for n in [1, 2, 3, 4] {
        let mut net = Net::random(&mhc(n as u32), 3, 6);
        net.config.rms_norm_eps = NO_EPS;
        net.set_all("mhc.phi.weight", |_, _| 0.0);
        net.set_all(
            "mhc.bias",
            |k, v| if (n..2 * n).contains(&k) { 0.0 } else { v },
        );
        let (got, want) = (net.run(), baseline(&net).run());
        assert_close(&mhc(n as u32), &got["logits"], &want["logits"], 1e-9);
    }
}

/// T-mHC-1, facts 2 and 3, with G5: which parameters have a gradient at the start, and what breaks the symmetry.
#[test]
fn the_first_gradients_of_mhc_part_the_streams() {
    for symmetric in [false, true] {
        for n in [2, 4] {
            let mut net = Net::initial(&mhc(n as u32), 3, 7);
            net.config.rms_norm_eps = NO_EPS;
            if symmetric {
                net.set_all("mhc.bias", |k, v| if k < n { 0.0 } else { v });
            }
            let outcome = net.run();
            let scale = largest_gradient(&outcome);
            let biases = outcome
                .iter()
                .filter(|(name, _)| name.ends_with("mhc.bias"));
            let mut parted = 0.0;
            for (name, gradient) in biases {
                let read = largest(&gradient[..n]);
                assert!(
                    read < 1e-8 * scale,
                    "{name}: read {read:.1e} of {scale:.1e}"
                );
                let matrix = largest(&gradient[2 * n..]);
                assert!(matrix < 1e-13 * scale, "{name}: matrix {matrix:.1e}");
                let write = &gradient[n..2 * n];
                let apart = write.iter().map(|v| v - write[0]).collect::<Vec<_>>();
                parted = f64::max(parted, largest(&apart));
            }
            if symmetric {
                assert!(parted < 1e-13 * scale, "{n} streams: {parted:.1e}");
            } else {
                assert!(
                    parted > 1e-4 * scale,
                    "{n} streams: {parted:.1e} of {scale:.1e}"
                );
            }
        }
    }
}

/// T-mHC-5: one stream has nothing to mix.
#[test]
fn one_stream_of_mhc_is_mixed_by_one() {
    let net = Net::random(&mhc(1), 2, 8);
    let outcome = net.run();
    for site in 0..4 {
        let mix = &outcome[&format!("gates.{site}.mix")];
        assert!(mix.iter().all(|&v| v == 1.0), "site {site}: {mix:?}");
        let write = &outcome[&format!("gates.{site}.write")];
        assert!(write.iter().all(|&v| 0.0 < v && v < 2.0));
    }
}

/// The table of initial values.
#[test]
fn mhc_has_the_initial_values_of_four_programs() {
    let initial = |init: &str, seed| {
        let text = format!(r#"{{"kind": "mhc", "streams": 4, "init": "{init}"}}"#);
        Net::initial(&text, 4, seed)
    };
    let bias = |net: &Net, site: u32| {
        let kind = if site.is_multiple_of(2) {
            "attn"
        } else {
            "mlp"
        };
        net.get(&format!("model.layers.{}.{kind}_mhc.bias", site / 2))
            .to_vec()
    };
    let matrix = |off: f64| -> Vec<f64> {
        (0..16)
            .map(|k| if k % 5 == 0 { 0.0 } else { off })
            .collect()
    };
    let phi = |net: &Net| net.get("model.layers.0.mlp_mhc.phi.weight").to_vec();
    let one_hot = |chosen| (0..4).map(move |k| if k == chosen { 1.0 } else { -1.0 });

    let net = initial("p0", 1);
    assert_eq!(
        net.values,
        Net::initial(&mhc(4), 4, 1).values,
        "the default"
    );
    for site in 0..8 {
        let all = bias(&net, site);
        let want: Vec<f64> = one_hot(site as usize % 4).collect();
        assert_eq!(all[..4], want);
        assert_eq!(all[4..8], [0.0; 4]);
        assert_eq!(all[8..], matrix(-5.0));
    }
    assert!(phi(&net).iter().all(|&v| v == 0.0));
    assert!(net.get("model.layers.1.attn_mhc.alpha") == [f64::from(0.01_f32); 3]);

    let net = initial("megatron", 1);
    assert!(bias(&net, 3).iter().all(|&v| v == 0.0));
    let bound = (6.0_f64 / (4.0 * 12.0 + 24.0)).sqrt();
    let values = phi(&net);
    let (most, square) = (largest(&values), values.iter().map(|v| v * v).sum::<f64>());
    assert!(0.98 * bound < most && most <= bound, "{most} of {bound}");
    let deviation = (square / values.len() as f64).sqrt() / bound;
    assert!(
        (deviation - 1.0 / 3.0_f64.sqrt()).abs() < 0.03,
        "{deviation}"
    );
    let mix = &net.run()["gates.0.mix"];
    assert!(mix.iter().all(|v| (v - 0.25).abs() < 0.02), "{mix:?}");

    let net = initial("mindformers", 1);
    assert_eq!(bias(&net, 5)[4..8], [0.0; 4]);
    assert_eq!(bias(&net, 5)[8..], matrix(-5.0));
    assert!(phi(&net).iter().any(|&v| v != 0.0));
    assert!(largest(&phi(&net)) < 5e-4);
    let read = &net.run()["gates.0.read"];
    assert!(read.iter().all(|v| (v - 0.25).abs() < 1e-4), "{read:?}");
    let single = r#"{"kind": "mhc", "streams": 1, "init": "mindformers"}"#;
    let single = Net::initial(single, 2, 1);
    assert!(single.values.iter().all(|v| v.is_finite()));

    let (net, other) = (initial("mhc_lite", 1), initial("mhc_lite", 2));
    let mut chosen = Vec::new();
    for site in 0..8 {
        let all = bias(&net, site);
        let stream = all[..4]
            .iter()
            .position(|&v| v == 1.0)
            .expect("one of four");
        let want: Vec<f64> = one_hot(stream).chain(one_hot(stream)).collect();
        assert_eq!(all[..8], want);
        assert_eq!(all[8..], matrix(-8.0));
        chosen.push(stream);
    }
    assert!(
        chosen.iter().any(|stream| *stream != chosen[0]),
        "{chosen:?}"
    );
    assert!((0..8).any(|site| bias(&net, site) != bias(&other, site)));
    assert!(phi(&net).iter().all(|&v| v == 0.0));
}

/// What the routing record says about a site: means over tokens, the matrix as a list of rows.
#[test]
fn the_record_has_the_coefficients_of_each_sublayer() {
    for residual in [hyper(3, true), mhc(3)] {
        let net = Net::random(&residual, 2, 9);
        let outcome = net.run();
        let how = plans::Training {
            batch: net.batch,
            accumulate: 1,
            checkpoint: false,
            watch: true,
        };
        let limits = oracle().limits();
        let plan = plans::training(&net.config, &net.parameters, &how, &limits).expect("records");
        let find = |name: &str| outcome.get(name).cloned();
        let sites = site_stats(4, &plan.routing, &plan.gates, find);
        assert_eq!(sites.len(), 4, "the read-out has no coefficients");
        for (number, site) in sites.iter().enumerate() {
            let text = serde_json::to_value(site).expect("is JSON");
            let keys: Vec<&String> = text.as_object().expect("an object").keys().collect();
            assert_eq!(keys, ["site", "kind", "streams", "read", "write", "mix"]);
            assert_eq!(text["streams"], serde_json::json!([]));
            let mean = |name: &str, column: usize, width: usize| {
                let values = &outcome[&format!("gates.{number}.{name}")];
                let rows = values.len() / width;
                values.chunks(width).map(|row| row[column]).sum::<f64>() / rows as f64
            };
            let mix = site.mix.as_ref().expect("is recorded");
            assert_eq!((mix.len(), mix[0].len()), (3, 3));
            assert!((mix[1][2] - mean("mix", 5, 9)).abs() < 1e-12);
            let (read, write) = (site.read.as_ref(), site.write.as_ref());
            assert!((read.expect("is recorded")[2] - mean("read", 2, 3)).abs() < 1e-12);
            assert!((write.expect("is recorded")[1] - mean("write", 1, 3)).abs() < 1e-12);
        }
    }
}
