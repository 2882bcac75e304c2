//! The ablations of `attn_res`, against the mechanism itself where they meet it, and its evaluation in two phases.

use braid_engine::nn::residual::Weighting;
use braid_tests::assert_close;
use braid_tests::net::{Net, Outcome};

/// `attn_res` with these keys.
fn attn_res(keys: &str) -> String {
    format!(r#"{{"kind": "attn_res", {keys}}}"#)
}

/// All that both outcomes have is the same to `tolerance`.
fn hold(what: &str, got: &Outcome, want: &Outcome, tolerance: f64) {
    let mut common = 0;
    for (name, want) in want {
        if let Some(got) = got.get(name) {
            assert_close(&format!("{what}: `{name}`"), got, want, tolerance);
            common += 1;
        }
    }
    assert!(common > 20, "{what}: only {common} tensors to compare");
}

/// I7, for whole models: logits, depth weights and every gradient. Finished and unfinished blocks, of all sizes.
#[test]
fn two_phases_are_the_single_pass() {
    for (layers, block) in [
        (2, 1),
        (3, 2),
        (4, 3),
        (4, 4),
        (4, 5),
        (4, 8),
        (2, u32::MAX),
    ] {
        let block = format!(r#""sublayers_per_block": {block}"#);
        let single = Net::random(&attn_res(&block), layers, 3);
        let keys = format!(r#"{block}, "evaluation": "two_phase""#);
        let two = Net::random(&attn_res(&keys), layers, 3);
        assert_eq!(single.values, two.values);
        assert_eq!(single.routing(), two.routing());
        let (want, got) = (single.run(), two.run());
        assert!(got.keys().eq(want.keys()));
        hold(&keys, &got, &want, 1e-10);
    }
}

#[test]
fn a_window_that_holds_everything_changes_nothing() {
    for block in [1, 2, 3] {
        let keys = format!(r#""sublayers_per_block": {block}"#);
        let all = Net::random(&attn_res(&keys), 3, 4);
        let window = Net::random(&attn_res(&format!(r#"{keys}, "window": 6"#)), 3, 4);
        assert_eq!(all.run(), window.run());
    }
}

#[test]
fn a_window_holds_the_embedding_and_the_newest_sources() {
    let names = |keys: &str, site: usize| {
        let net = Net::initial(&attn_res(keys), 3, 1);
        net.routing()[site].sources.clone()
    };
    assert_eq!(names(r#""window": 2"#, 1), ["embed", "attn 1"]);
    assert_eq!(names(r#""window": 2"#, 5), ["embed", "mlp 2", "attn 3"]);
    assert_eq!(names(r#""window": 1"#, 6), ["embed", "mlp 3"]);
    let blocks = r#""window": 1, "sublayers_per_block": 2"#;
    assert_eq!(names(blocks, 4), ["embed", "block 2"]);
    assert_eq!(names(blocks, 5), ["embed", "partial"]);
}

/// With equal weights all kinds of a softmax are one.
#[test]
fn zero_queries_and_equal_logits_are_the_same_model() {
    let block = r#""sublayers_per_block": 2"#;
    let mut plain = Net::random(&attn_res(block), 3, 5);
    plain.set_all("res_proj.weight", |_, _| 0.0);
    let want = plain.run();
    for keys in [
        r#""weights": "static""#,
        r#""key_norm": false"#,
        r#""depth_heads": 4"#,
    ] {
        let mut net = Net::random(&attn_res(&format!("{block}, {keys}")), 3, 5);
        net.set_all("res_proj.weight", |_, _| 0.0);
        net.set_all("res_logits", |_, _| 0.0);
        let got = net.run();
        assert_close(keys, &got["logits"], &want["logits"], 1e-11);
        for matrix in ["self_attn.q_proj", "mlp.down_proj"] {
            let name = format!("grad.model.layers.1.{matrix}.weight");
            assert_close(keys, &got[&name], &want[&name], 1e-11);
        }
        // Whatever weighs can learn: the second site has two sources.
        let router = net.parameters.specs().iter().find(|spec| {
            let own = spec.name.starts_with("model.layers.0.mlp_res_");
            own && !spec.name.ends_with("norm.weight")
        });
        let router = &got[&format!("grad.{}", router.expect("a router").name)];
        assert!(router.iter().any(|v| v.abs() > 1e-6), "{keys}: {router:?}");
    }
}

#[test]
fn sigmoid_weights_start_at_a_half_and_need_not_sum_to_one() {
    let net = Net::initial(&attn_res(r#""weights": "sigmoid""#), 2, 6);
    let outcome = net.run();
    for routing in net.routing() {
        assert_eq!(routing.weighting, Weighting::Sigmoid);
        let weights = &outcome[&routing.tensor()];
        assert!(weights.iter().all(|&a| a == 0.5), "{weights:?}");
    }
    let net = Net::random(&attn_res(r#""weights": "sigmoid""#), 2, 6);
    let outcome = net.run();
    for routing in net.routing() {
        let weights = &outcome[&routing.tensor()];
        assert!(weights.iter().all(|a| (0.0..1.0).contains(a)));
    }
    let sum: f64 = outcome["routing.4.0"][..5].iter().sum();
    assert!((sum - 1.0).abs() > 0.5, "{sum}");
}

#[test]
fn static_weights_are_one_list_for_all_tokens() {
    let net = Net::random(&attn_res(r#""weights": "static""#), 2, 7);
    let outcome = net.run();
    for routing in net.routing() {
        assert!(routing.shared);
        assert_eq!(outcome[&routing.tensor()].len(), routing.sources.len());
    }
}

#[test]
fn parameters_have_the_names_of_the_table() {
    let ending = |keys: &str, name: &str| {
        let net = Net::initial(&attn_res(keys), 2, 1);
        let specs = net.parameters.specs().iter();
        let specs = specs.filter(|spec| spec.name.ends_with(name));
        let all: Vec<_> = specs.map(|spec| (spec.group.decay, spec.shape)).collect();
        assert!(all.iter().all(|(decay, _)| !decay));
        all.len()
    };
    for (keys, proj, norm, logits) in [
        (r#""weights": "sigmoid""#, 5, 5, 0),
        (r#""weights": "static""#, 0, 0, 5),
        (r#""key_norm": false"#, 5, 0, 0),
        (r#""depth_heads": 2"#, 5, 5, 0),
    ] {
        let counts = ["res_proj.weight", "res_norm.weight", "res_logits"];
        let counts = counts.map(|name| ending(keys, name));
        assert_eq!(counts, [proj, norm, logits], "{keys}");
    }
}
