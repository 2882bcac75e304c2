//! Invariants I1 to I16 of the routing specification, as far as they are statements about whole models. Those about the
//! depth mix and the gates alone stand with the ops.

use braid_engine::cpu::CpuExecutor;
use braid_engine::nn::residual::Weighting;
use braid_tests::net::{Net, Outcome};
use braid_tests::{EXACT, assert_close};

use crate::MECHANISMS;

/// Equal to rounding in `f64`.
const F64: f64 = 1e-11;

fn dar(route: &str, layers_per_block: u32) -> String {
    format!(r#"{{"kind": "dar", "route": "{route}", "layers_per_block": {layers_per_block}}}"#)
}

fn zero_queries(net: &mut Net) {
    net.set_all("res_proj.weight", |_, _| 0.0);
    net.set_all("dar.query", |_, _| 0.0);
    net.set_all("depth_logits", |_, _| 0.0);
    net.set_all("res_logits", |_, _| 0.0);
}

/// Names and numbers of sources of all reads whose weights are a distribution.
fn distributions(net: &Net) -> Vec<(String, usize)> {
    let routing = net.routing().into_iter();
    routing
        .filter(|read| read.weighting == Weighting::Softmax)
        .map(|read| (read.tensor(), read.sources.len()))
        .collect()
}

/// I1: zero queries weigh all sources equally, and so do zero logits.
#[test]
fn a_zero_query_weighs_all_sources_equally() {
    for (seed, (residual, layers)) in MECHANISMS.into_iter().enumerate() {
        if residual.contains("null") {
            continue; // the null source's logit is fixed
        }
        let mut net = Net::random(residual, layers, seed as u64);
        zero_queries(&mut net);
        let outcome = net.run();
        for (tensor, sources) in distributions(&net) {
            let uniform = vec![1.0 / sources as f64; outcome[&tensor].len()];
            assert_close(
                &format!("{residual}: {tensor}"),
                &outcome[&tensor],
                &uniform,
                F64,
            );
        }
    }
}

/// Weights of every read lie in [0, 1] and sum to one, at any parameters.
#[test]
fn weights_are_a_distribution() {
    for (seed, (residual, layers)) in MECHANISMS.into_iter().enumerate() {
        let net = Net::random(residual, layers, seed as u64);
        let outcome = net.run();
        for (tensor, sources) in distributions(&net) {
            for row in outcome[&tensor].chunks(sources) {
                assert!(
                    row.iter().all(|a| (0.0..=1.0).contains(a)),
                    "{residual}: {tensor}"
                );
                assert!(
                    (row.iter().sum::<f64>() - 1.0).abs() < 1e-12,
                    "{residual}: {tensor}"
                );
            }
        }
    }
}

/// I2: block forms with blocks of one are the full forms.
#[test]
fn delta_with_blocks_of_one_sublayer_is_delta_per_sublayer() {
    let full = Net::random(r#"{"kind": "delta"}"#, 3, 1);
    let mut block = Net::random(
        r#"{"kind": "delta", "granularity": "block", "sublayers_per_block": 1}"#,
        3,
        2,
    );
    block.share(&full);
    (block.ids, block.labels) = (full.ids.clone(), full.labels.clone());
    assert_eq!(full.run(), block.run());
}

fn baseline(of: &Net, layers: u32) -> Outcome {
    let mut net = Net::random(r#"{"kind": "standard"}"#, layers, 9);
    net.share(of);
    (net.ids, net.labels) = (of.ids.clone(), of.labels.clone());
    net.run()
}

/// I3: `centered` with zero queries and `gated` with zero gates are the baseline, to the bit.
#[test]
fn centered_and_gated_start_as_the_baseline() {
    for granularity in ["sublayer", "block"] {
        for mode in ["centered", "gated"] {
            let text = format!(
                r#"{{"kind": "delta", "granularity": "{granularity}", "sublayers_per_block": 2, "mode": "{mode}"}}"#
            );
            let mut net = Net::random(&text, 3, 3);
            if mode == "centered" {
                zero_queries(&mut net);
            }
            net.set_all("res_gate", |_, _| 0.0);
            assert_close(
                &text,
                &net.run()["logits"],
                &baseline(&net, 3)["logits"],
                F64,
            );
        }
    }
}

/// I3: `plain` and `null` are not the baseline with blocks; per sublayer only the eps of the pre-norm tells them apart.
#[test]
fn plain_and_null_differ_from_the_baseline_with_blocks_only() {
    for (mode, granularity) in [
        ("plain", "block"),
        ("null", "block"),
        ("plain", "sublayer"),
        ("null", "sublayer"),
    ] {
        let text = format!(
            r#"{{"kind": "delta", "granularity": "{granularity}", "sublayers_per_block": 3, "mode": "{mode}"}}"#
        );
        let mut net = Net::random(&text, 4, 4);
        zero_queries(&mut net);
        let (got, want) = (net.run(), baseline(&net, 4));
        let off = got["logits"]
            .iter()
            .zip(&want["logits"])
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f64::max);
        assert_eq!(
            off > 1e-3,
            granularity == "block",
            "{text}: logits differ by {off:.1e}"
        );
    }
}

/// I3b: at zero queries the router has a gradient with `plain` and `centered`, and none with `gated` at zero gates.
#[test]
fn the_router_is_alive_at_zero_queries() {
    for (mode, alive) in [("plain", true), ("centered", true), ("gated", false)] {
        let mut net = Net::random(&format!(r#"{{"kind": "delta", "mode": "{mode}"}}"#), 3, 5);
        zero_queries(&mut net);
        net.set_all("res_gate", |_, _| 0.0);
        let outcome = net.run();
        for site in ["layers.0.mlp_", "layers.1.attn_", "layers.2.mlp_"] {
            let gradient = &outcome[&format!("grad.model.{site}res_proj.weight")];
            assert_eq!(gradient.iter().any(|v| *v != 0.0), alive, "{mode} {site}");
        }
    }
}

/// Block attention residuals with the base weights of `of`.
fn attn_res(of: &Net, layers: u32, sublayers_per_block: u32) -> Net {
    let text = format!(r#"{{"kind": "attn_res", "sublayers_per_block": {sublayers_per_block}}}"#);
    let mut net = Net::random(&text, layers, 6);
    net.share(of);
    (net.ids, net.labels) = (of.ids.clone(), of.labels.clone());
    net
}

/// I15: value maps that are the identity change nothing.
#[test]
fn sep_v_with_identity_maps_is_attention_residuals() {
    let mut net = Net::random(r#"{"kind": "sep_v", "sublayers_per_block": 3}"#, 4, 8);
    let d = 12;
    net.set_all("res_value.weight", |element, _| {
        f64::from(u8::from(element % (d + 1) == 0))
    });
    let (got, want) = (net.run(), attn_res(&net, 4, 3).run());
    for (name, want) in &want {
        assert_close(name, &got[name], want, F64);
    }
    let maps = net.parameters.specs().iter();
    let maps = maps.filter(|spec| spec.name.ends_with("res_value.weight"));
    let mut count = 0;
    for spec in maps {
        assert!(spec.group.decay && spec.group.routing, "{}", spec.name);
        count += 1;
    }
    assert_eq!(count, 9);
}

/// I4: at its start DAR is block attention residuals, for any transport and any asymmetry of the writes.
#[test]
fn dar_starts_as_block_attention_residuals() {
    for route in ["dar", "self_kv", "cross_v", "fixed_kv"] {
        for (delta, rho) in [(0.5, 2.0), (1.3, -0.4), (0.0, 0.7)] {
            let mut net = Net::random(&dar(route, 2), 4, 7);
            zero_queries(&mut net);
            net.set_all("alpha.bias", |_, _| 0.0);
            for gate in ["alpha.weight", "rho.weight", "beta.weight"] {
                net.set_all(gate, |_, _| 0.0);
            }
            net.set_all("rho.bias", |_, _| rho);
            net.set_all(
                "attn_dar.beta.bias",
                |j, _| if j == 0 { delta } else { -delta },
            );
            net.set_all(
                "mlp_dar.beta.bias",
                |j, _| if j == 0 { -delta } else { delta },
            );
            let mut other = attn_res(&net, 4, 4);
            zero_queries(&mut other);
            let (got, want) = (net.run(), other.run());
            let off = got["logits"]
                .iter()
                .zip(&want["logits"])
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f64::max);
            let same = route != "fixed_kv" || delta == 0.0;
            assert_eq!(
                off < 1e-10,
                same,
                "{route}, delta {delta}: logits differ by {off:.1e}"
            );
        }
    }
}

/// I5: with tied streams every route is block attention residuals with the same queries.
#[test]
fn tied_streams_are_block_attention_residuals() {
    for route in ["dar", "self_kv", "cross_v", "fixed_kv"] {
        let mut net = Net::random(&dar(route, 2), 4, 8);
        let d = net.config.hidden_size as usize;
        for gate in [
            "alpha.weight",
            "alpha.bias",
            "rho.weight",
            "beta.weight",
            "beta.bias",
        ] {
            net.set_all(gate, |_, _| 0.0);
        }
        let mut other = attn_res(&net, 4, 4);
        for spec in net.parameters.clone().specs() {
            if let Some(site) = spec.name.strip_suffix("dar.query") {
                let query = net.get(&spec.name)[..d].to_vec();
                net.set(&spec.name, |element, _| query[element % d]);
                let gain = net.get(&format!("{site}dar.key_norm.weight")).to_vec();
                other.set(&format!("{site}res_proj.weight"), |element, _| {
                    query[element]
                });
                other.set(&format!("{site}res_norm.weight"), |element, _| {
                    gain[element]
                });
            }
        }
        assert_close(route, &net.run()["logits"], &other.run()["logits"], F64);
    }
}

/// I6: exchanging everything that belongs to the two streams changes nothing, to the bit.
#[test]
fn the_streams_are_interchangeable() {
    for route in ["dar", "self_kv", "cross_v"] {
        let net = Net::random(&dar(route, 2), 4, 10);
        let mut swapped = net.clone();
        let d = net.config.hidden_size as usize;
        for name in ["dar.query", "alpha.weight", "rho.weight", "beta.weight"] {
            for spec in net
                .parameters
                .specs()
                .iter()
                .filter(|spec| spec.name.ends_with(name))
            {
                let old = net.get(&spec.name).to_vec();
                swapped.set(&spec.name, |element, _| old[(element + d) % (2 * d)]);
            }
        }
        for name in ["alpha.bias", "beta.bias"] {
            for spec in net
                .parameters
                .specs()
                .iter()
                .filter(|spec| spec.name.ends_with(name))
            {
                let old = net.get(&spec.name).to_vec();
                swapped.set(&spec.name, |element, _| old[1 - element]);
            }
        }
        assert_close(route, &swapped.run()["logits"], &net.run()["logits"], EXACT);
        let fast = || Box::new(CpuExecutor::<f32>::new(None));
        assert_close(
            route,
            &swapped.run_on(fast())["logits"],
            &net.run_on(fast())["logits"],
            EXACT,
        );
    }
}

/// I13: what a sublayer computes changes nothing at earlier sites.
#[test]
fn depth_is_causal() {
    for (seed, (residual, layers)) in MECHANISMS.into_iter().enumerate() {
        let net = Net::random(residual, layers, seed as u64);
        let mut disturbed = net.clone();
        disturbed.set("model.layers.1.self_attn.o_proj.weight", |_, v| v + 0.1); // site 2
        let (before, after) = (net.run(), disturbed.run());
        for tensor in net.sources().into_keys() {
            let site: u32 = tensor
                .split('.')
                .nth(1)
                .and_then(|site| site.parse().ok())
                .expect("routing.<site>.<stream>");
            if site <= 2 {
                assert_close(
                    &format!("{residual}: {tensor}"),
                    &after[&tensor],
                    &before[&tensor],
                    EXACT,
                );
            }
        }
        assert_ne!(before["logits"], after["logits"], "{residual}");
    }
}

/// I13: a later token changes nothing before it; another sequence changes nothing at all.
#[test]
fn time_is_causal_and_sequences_are_independent() {
    for (seed, (residual, layers)) in MECHANISMS.into_iter().enumerate() {
        let net = Net::random(residual, layers, seed as u64);
        let mut disturbed = net.clone();
        disturbed.ids[3] = (net.ids[3] + 1) % 23; // sequence 0, position 3 of 5
        let (before, after) = (net.run(), disturbed.run());
        let vocab = net.config.vocab_size as usize;
        for (row, (a, b)) in before["logits"]
            .chunks(vocab)
            .zip(after["logits"].chunks(vocab))
            .enumerate()
        {
            if !(3..5).contains(&row) {
                assert_close(&format!("{residual}: row {row}"), b, a, EXACT);
            }
        }
        assert_ne!(
            before["logits"][3 * vocab..4 * vocab],
            after["logits"][3 * vocab..4 * vocab],
            "{residual}"
        );
    }
}
