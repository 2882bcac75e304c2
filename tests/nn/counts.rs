//! Numbers of parameters and of sources against the formulas of section 7 of the routing specification (I16).

use braid_engine::models::plans;
use braid_engine::nn::residual::ResidualConfig;
use braid_tests::net::Net;
use braid_tests::oracle;

use crate::MECHANISMS;

fn routing_parameters(residual: &str, layers: u32) -> usize {
    Net::initial(residual, layers, 1).parameters.routing_count()
}

#[test]
fn extra_parameters_follow_the_formulas() {
    let d = 12;
    for layers in [2, 3, 5] {
        let (n, l) = (layers as usize, 2 * layers as usize);
        for (residual, expected) in [
            (r#"{"kind": "standard"}"#, 0),
            (r#"{"kind": "attn_res"}"#, 2 * d * (l + 1)),
            (
                r#"{"kind": "attn_res", "sublayers_per_block": 3}"#,
                2 * d * (l + 1),
            ),
            (r#"{"kind": "delta"}"#, 2 * d * l),
            (r#"{"kind": "delta", "mode": "gated"}"#, (2 * d + 1) * l),
            (
                r#"{"kind": "dar", "gates": "static"}"#,
                l * (3 * d + 5) + 3 * d + 2,
            ),
            (r#"{"kind": "dar"}"#, l * (9 * d + 5) + 5 * d + 2),
            (r#"{"kind": "mhc2_matched"}"#, l * (6 * d + 5)),
            (
                r#"{"kind": "hyper_connections", "streams": 3, "dynamic": false}"#,
                l * 3 * 5,
            ),
            (
                r#"{"kind": "hyper_connections", "streams": 4}"#,
                l * (6 * d + 4 * 6 + 2),
            ),
            (r#"{"kind": "mhc", "streams": 2}"#, l * (16 * d + 11)),
            (r#"{"kind": "mhc", "streams": 4}"#, l * (96 * d + 27)),
            (
                r#"{"kind": "attn_res", "weights": "sigmoid", "depth_heads": 4, "window": 3}"#,
                2 * d * (l + 1),
            ),
            (r#"{"kind": "attn_res", "key_norm": false}"#, d * (l + 1)),
            (
                r#"{"kind": "attn_res", "weights": "static"}"#,
                (l + 1) * (l + 2) / 2,
            ),
            (
                r#"{"kind": "attn_res", "weights": "static", "window": 2}"#,
                1 + 2 + 3 * (l - 1),
            ),
            (r#"{"kind": "sep_v"}"#, (2 * d + d * d) * (l + 1)),
            (r#"{"kind": "cumulative"}"#, 2 * d * l),
            (r#"{"kind": "cumulative", "read": "add"}"#, 2 * d * l),
            (r#"{"kind": "dense_former"}"#, n * (n + 3) / 2),
            (
                r#"{"kind": "dense_former", "dilation": 2, "period": 3}"#,
                (1..=n / 3).map(|i| 3 * i / 2 + 1).sum(),
            ),
            (r#"{"kind": "transparent"}"#, (n + 1) * (n + 2) / 2),
            (r#"{"kind": "transparent", "weights": "mean"}"#, 0),
        ] {
            assert_eq!(
                routing_parameters(residual, layers),
                expected,
                "{residual}, {layers} layers"
            );
        }
    }
}

#[test]
fn sources_follow_the_formulas() {
    for (layers, s) in [(2, 2), (4, 2), (4, 4), (6, 4)] {
        let (l, n) = (2 * layers as usize, 2 * layers as usize / s);
        let total = |residual: &str| {
            Net::initial(residual, layers, 1)
                .sources()
                .values()
                .sum::<usize>()
        };
        let block = s * n * (n + 1) / 2 + n * (s - 1) + n + 1;
        assert_eq!(total(r#"{"kind": "attn_res"}"#), (l + 1) * (l + 2) / 2);
        assert_eq!(
            total(&format!(
                r#"{{"kind": "attn_res", "sublayers_per_block": {s}}}"#
            )),
            block
        );
        assert_eq!(total(r#"{"kind": "sep_v"}"#), (l + 1) * (l + 2) / 2);
        assert_eq!(total(r#"{"kind": "cumulative"}"#), l * (l + 1) / 2);
        let layers = l / 2;
        assert_eq!(
            total(r#"{"kind": "dense_former"}"#),
            layers * (layers + 3) / 2
        );
        assert_eq!(
            total(r#"{"kind": "transparent"}"#),
            (layers + 1) * (layers + 2) / 2
        );
        assert_eq!(total(r#"{"kind": "delta"}"#), (l - 1) * (l + 2) / 2);
        let delta =
            format!(r#"{{"kind": "delta", "granularity": "block", "sublayers_per_block": {s}}}"#);
        assert_eq!(total(&delta), s * n * (n + 1) / 2 - 1);
        assert_eq!(
            total(&format!(
                r#"{{"kind": "dar", "layers_per_block": {}}}"#,
                s / 2
            )),
            2 * block
        );
    }
}

/// Labels and numbers of elements of the largest tensors of a forward and backward pass.
fn largest(net: &Net) -> Vec<(String, u64)> {
    let how = plans::Training {
        batch: net.batch,
        accumulate: 1,
        checkpoint: false,
        watch: false,
    };
    let limits = oracle().limits();
    let plan = plans::training(&net.config, &net.parameters, &how, &limits).expect("records");
    let largest = plan.plan.memory.largest.into_iter();
    largest
        .map(|(label, bytes)| (label, bytes / limits.float))
        .collect()
}

#[test]
fn sizes_of_a_mechanism_are_those_that_are_recorded() {
    // Experts change nothing of it, and have large tensors of their own.
    let dense = |(residual, _): &(&str, u32)| !residual.contains("feed_forward");
    let mechanisms: Vec<_> = MECHANISMS.into_iter().filter(dense).collect();
    for kind in ResidualConfig::KINDS {
        let own = format!(r#""kind": "{kind}""#);
        assert!(
            mechanisms.iter().any(|(all, _)| all.contains(&own)),
            "{kind}"
        );
    }
    for (residual, layers) in mechanisms {
        // Deep enough that a history is among the largest tensors, and that blocks remain unfinished.
        for layers in [layers.max(3), layers + 4, layers + 5] {
            let net = Net::initial(residual, layers, 1);
            let config = &net.config.residual;
            let sources = net.routing().into_iter().map(|routing| {
                let slots = routing.sources.iter().filter(|name| *name != "null");
                slots.count() as u64
            });
            let told = config.most_sources(layers);
            assert_eq!(told, sources.max().unwrap_or(0), "{residual}, {layers}");

            let (rows, width) = (u64::from(net.batch.rows()), net.config.hidden_size);
            let stride = (rows * u64::from(width)).next_multiple_of(64);
            let histories = ["depth sources", "streams", "layer outputs"];
            let recorded = largest(&net)
                .iter()
                .find(|(label, _)| histories.contains(&label.as_str()))
                .map_or(0, |(_, elements)| elements / stride);
            let told = config.most_slots(layers);
            assert_eq!(told, recorded, "{residual}, {layers}");
            assert!(config.widest(layers, width) >= told * u64::from(width));
        }
    }
}

#[test]
fn states_and_scratch_of_streams_count_as_wide_tensors() {
    for (residual, label, widest) in [
        (
            r#"{"kind": "mhc", "streams": 4, "sinkhorn_iters": 100}"#,
            "sums of columns and rows",
            800,
        ),
        (
            r#"{"kind": "mhc", "streams": 8, "sinkhorn_iters": 1}"#,
            "stream_mix",
            96,
        ),
        (
            r#"{"kind": "hyper_connections", "streams": 8}"#,
            "stream_mix",
            96,
        ),
    ] {
        let net = Net::initial(residual, 2, 1);
        assert_eq!(net.config.residual.widest(2, 12), widest, "{residual}");
        let elements = u64::from(net.batch.rows()) * widest;
        let largest = largest(&net);
        assert!(
            largest
                .iter()
                .any(|(name, len)| name.contains(label) && *len == elements),
            "{residual}: {largest:?}"
        );
    }
}

#[test]
fn the_base_model_has_the_parameters_of_the_table() {
    let net = Net::initial(r#"{"kind": "standard"}"#, 3, 1);
    let (d, v, f, q, kv) = (12, 23, 14, 12, 6);
    let layer = d * q + 2 * d * kv + q * d + 2 * 6 + 3 * d * f + 2 * d;
    assert_eq!(net.parameters.count(), v * d + 3 * layer + d);
}
