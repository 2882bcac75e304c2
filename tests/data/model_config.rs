//! `config.json`.

use braid_engine::models::ModelConfig;
use braid_engine::models::config::FeedForwardConfig;
use braid_engine::nn::residual::ResidualConfig;
use proptest::prelude::*;

const SMALL: &str = r#"{"vocab_size": 7, "hidden_size": 20, "intermediate_size": 22, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6}"#;

fn small() -> ModelConfig {
    ModelConfig::from_json(SMALL).unwrap()
}

#[test]
fn missing_keys_have_the_defaults_of_the_format() {
    let config = small();
    assert_eq!(config.model_type, "braid");
    assert_eq!(
        (
            config.rms_norm_eps,
            config.rope_theta,
            config.initializer_range
        ),
        (1e-6, 1e4, 0.02)
    );
    assert!(config.tie_word_embeddings && config.qk_norm);
    assert_eq!(config.residual, ResidualConfig::Standard {});
    assert_eq!(config.feed_forward, FeedForwardConfig::Swiglu {});
    let all: Vec<String> = ResidualConfig::KINDS
        .iter()
        .map(|kind| serde_json::to_string(&ResidualConfig::of_kind(kind).unwrap()).unwrap())
        .collect();
    assert_eq!(
        all,
        [
            r#"{"kind":"standard"}"#,
            r#"{"kind":"attn_res","sublayers_per_block":1,"weights":"softmax","key_norm":true,"depth_heads":1,"window":0,"evaluation":"single"}"#,
            r#"{"kind":"sep_v","sublayers_per_block":1}"#,
            r#"{"kind":"delta","granularity":"sublayer","sublayers_per_block":1,"mode":"plain","null_logit":0.0}"#,
            r#"{"kind":"dar","layers_per_block":1,"route":"dar","gates":"dynamic","include_partial":true}"#,
            r#"{"kind":"mhc2_matched"}"#,
            r#"{"kind":"hyper_connections","streams":2,"dynamic":true}"#,
            r#"{"kind":"mhc","streams":2,"projection":"sinkhorn","sinkhorn_iters":20,"init":"p0"}"#,
            r#"{"kind":"dense_former","dilation":1,"period":1}"#,
            r#"{"kind":"transparent","init":"uniform","weights":"learned"}"#,
            r#"{"kind":"cumulative","read":"replace"}"#,
        ]
    );
}

#[test]
fn unknown_keys_in_the_objects_are_refused() {
    for text in [
        r#"{"kind":"standard","streams":2}"#,
        r#"{"kind":"dar","layer_per_block":2}"#,
        r#"{"kind":"dual"}"#,
        r#"{"kind":"delta","mode":"softmax"}"#,
        r#"{"kind":"attn_res","sublayers_per_block":-1}"#,
    ] {
        assert!(
            serde_json::from_str::<ResidualConfig>(text).is_err(),
            "{text}"
        );
    }
    assert!(serde_json::from_str::<FeedForwardConfig>(r#"{"kind":"moe"}"#).is_err());
    assert!(serde_json::from_str::<FeedForwardConfig>(r#"{"kind":"swiglu","experts":2}"#).is_err());
}

#[test]
fn the_routes_are_those_of_the_table() {
    use braid_engine::nn::residual::DarRoute;
    let table = |route: DarRoute| {
        [
            route.key_stream(0),
            route.key_stream(1),
            route.value_stream(0),
            route.value_stream(1),
        ]
    };
    assert_eq!(table(DarRoute::Dar), [1, 0, 0, 1]);
    assert_eq!(table(DarRoute::SelfKv), [0, 1, 0, 1]);
    assert_eq!(table(DarRoute::CrossV), [0, 1, 1, 0]);
    assert_eq!(table(DarRoute::FixedKv), [0, 0, 1, 1]);
}

/// The refusal of a changed small configuration.
fn refusal(change: impl FnOnce(&mut ModelConfig)) -> String {
    let mut config = small();
    change(&mut config);
    config.validate().unwrap_err().to_string()
}

#[test]
fn impossible_values_are_refused_by_the_name_that_a_person_wrote() {
    let cases = [
        ("model.layers: is 0", refusal(|c| c.num_hidden_layers = 0)),
        ("model.width: is 0", refusal(|c| c.hidden_size = 0)),
        ("model.heads: is 0", refusal(|c| c.num_attention_heads = 0)),
        (
            "model.kv_heads: is 3; it must divide model.heads, 4",
            refusal(|c| c.num_key_value_heads = 3),
        ),
        (
            "model.kv_heads: is 8",
            refusal(|c| c.num_key_value_heads = 8),
        ),
        (
            "model.kv_heads: is 0",
            refusal(|c| c.num_key_value_heads = 0),
        ),
        (
            "model.head_dim: is 5; it must be even",
            refusal(|c| c.head_dim = 5),
        ),
        ("model.head_dim: is 130", refusal(|c| c.head_dim = 130)),
        ("model.ffn: is 0", refusal(|c| c.intermediate_size = 0)),
        ("vocab_size: is 0", refusal(|c| c.vocab_size = 0)),
        ("model.eps: is 0", refusal(|c| c.rms_norm_eps = 0.0)),
        ("model.eps: is NaN", refusal(|c| c.rms_norm_eps = f64::NAN)),
        (
            "model.rope_theta: is inf",
            refusal(|c| c.rope_theta = f64::INFINITY),
        ),
        (
            "model.init_std: is -1",
            refusal(|c| c.initializer_range = -1.0),
        ),
        (
            "residual.layers_per_block: is 0",
            refusal(|c| {
                c.residual = serde_json::from_str(r#"{"kind":"dar","layers_per_block":0}"#).unwrap()
            }),
        ),
        (
            "residual.streams: is 3; `projection = \"exact2\"` needs 2",
            refusal(|c| {
                c.residual =
                    serde_json::from_str(r#"{"kind":"mhc","streams":3,"projection":"exact2"}"#)
                        .unwrap()
            }),
        ),
        (
            "feed_forward.top_k: is 1",
            refusal(|c| {
                c.feed_forward =
                    serde_json::from_str(r#"{"kind":"moe","top_k":1,"intermediate_size":8}"#)
                        .unwrap()
            }),
        ),
        (
            "feed_forward.top_k: is 9",
            refusal(|c| {
                c.feed_forward =
                    serde_json::from_str(r#"{"kind":"moe","top_k":9,"intermediate_size":8}"#)
                        .unwrap()
            }),
        ),
        (
            "feed_forward.routed_scale: is 0",
            refusal(|c| {
                c.feed_forward = serde_json::from_str(
                    r#"{"kind":"moe","gate":"sigmoid_bias","routed_scale":0,"intermediate_size":8}"#,
                )
                .unwrap()
            }),
        ),
    ];
    for (expected, message) in cases {
        assert!(
            message.starts_with(expected),
            "{message}\n  should start with {expected}"
        );
    }
}

#[test]
fn ablations_that_do_not_go_together_are_refused_with_a_sentence() {
    let refusal = |keys: &str| {
        let text = format!(r#"{{"kind":"attn_res",{keys}}}"#);
        let config: ResidualConfig = serde_json::from_str(&text).unwrap();
        config.validate(3, 12).unwrap_err().to_string()
    };
    for (keys, expected) in [
        (
            r#""depth_heads":5"#,
            "residual.depth_heads: is 5; it must divide model.width, 12",
        ),
        (r#""depth_heads":0"#, "residual.depth_heads: is 0"),
        (
            r#""weights":"static","key_norm":false"#,
            "residual.weights: is \"static\"",
        ),
        (
            r#""weights":"static","depth_heads":2"#,
            "residual.weights: is \"static\"",
        ),
        (
            r#""evaluation":"two_phase","weights":"sigmoid""#,
            "residual.evaluation: is \"two_phase\"",
        ),
        (
            r#""evaluation":"two_phase","weights":"static""#,
            "residual.evaluation: is \"two_phase\"",
        ),
        (
            r#""evaluation":"two_phase","window":2"#,
            "residual.evaluation: is \"two_phase\"",
        ),
        (
            r#""evaluation":"two_phase","depth_heads":2"#,
            "residual.evaluation: is \"two_phase\"",
        ),
        (
            r#""evaluation":"two_phase","key_norm":false"#,
            "residual.evaluation: is \"two_phase\"",
        ),
    ] {
        let message = refusal(keys);
        assert!(message.starts_with(expected), "{message}");
    }
    // A window allows any depth.
    let deep: ResidualConfig = serde_json::from_str(r#"{"kind":"attn_res","window":8}"#).unwrap();
    assert!(deep.validate(256, 12).is_ok());
    assert_eq!((deep.most_sources(256), deep.most_slots(256)), (9, 513));
}

#[test]
fn more_than_64_sources_are_refused_and_64_are_not() {
    let at = |residual: &str, layers: u32| {
        serde_json::from_str::<ResidualConfig>(residual)
            .unwrap()
            .validate(layers, 12)
    };
    // Full attention residuals read the embedding and all 2 N sublayers.
    assert!(at(r#"{"kind":"attn_res"}"#, 31).is_ok());
    let message = at(r#"{"kind":"attn_res"}"#, 32).unwrap_err().to_string();
    assert!(
        message.contains("model.layers: is 32") && message.contains("65 sources"),
        "{message}"
    );
    assert!(at(r#"{"kind":"attn_res","sublayers_per_block":4}"#, 32).is_ok());
    assert!(at(r#"{"kind":"delta"}"#, 32).is_ok());
    assert!(at(r#"{"kind":"delta"}"#, 33).is_err());
    // The null source has no slot.
    assert!(at(r#"{"kind":"delta","mode":"null"}"#, 32).is_ok());
    assert!(at(r#"{"kind":"dar"}"#, 63).is_ok());
    assert!(at(r#"{"kind":"dar"}"#, 64).is_err());
    assert!(at(r#"{"kind":"standard"}"#, 200).is_ok());
    // An average that is never taken reads nothing.
    assert!(at(r#"{"kind":"dense_former","period":101}"#, 100).is_ok());
}

#[test]
fn the_advice_about_sources_names_keys_of_the_kind() {
    for (residual, advice) in [
        (
            r#"{"kind":"attn_res"}"#,
            "lower model.layers or raise residual.sublayers_per_block, or set residual.window",
        ),
        (
            r#"{"kind":"sep_v"}"#,
            "lower model.layers or raise residual.sublayers_per_block",
        ),
        (
            r#"{"kind":"delta"}"#,
            "lower model.layers or set residual.granularity = \"block\" and residual.sublayers_per_block",
        ),
        (
            r#"{"kind":"delta","granularity":"block"}"#,
            "lower model.layers or raise residual.sublayers_per_block",
        ),
        (
            r#"{"kind":"dar"}"#,
            "lower model.layers or raise residual.layers_per_block",
        ),
        (
            r#"{"kind":"dense_former"}"#,
            "lower model.layers or raise residual.dilation",
        ),
        (r#"{"kind":"transparent"}"#, "lower model.layers"),
        (r#"{"kind":"cumulative"}"#, "lower model.layers"),
    ] {
        let config: ResidualConfig = serde_json::from_str(residual).unwrap();
        let message = config.validate(200, 12).unwrap_err().to_string();
        assert!(message.ends_with(advice), "{residual}: {message}");
    }
}

#[test]
fn the_most_sources_are_those_of_the_longest_list() {
    // Source lists counted one site at a time, as the format describes them.
    for layers in 1..8_u32 {
        for block in 1..6_u32 {
            let text = format!(r#"{{"kind":"attn_res","sublayers_per_block":{block}}}"#);
            let config: ResidualConfig = serde_json::from_str(&text).unwrap();
            let counted = (0..=2 * layers)
                .map(|site| 1 + site / block + u32::from(site % block != 0))
                .max();
            assert_eq!(
                Some(config.most_sources(layers)),
                counted.map(u64::from),
                "{text} {layers}"
            );
            let text = format!(r#"{{"kind":"dar","layers_per_block":{block}}}"#);
            let config: ResidualConfig = serde_json::from_str(&text).unwrap();
            let counted = (0..=2 * layers)
                .map(|site| 1 + site / (2 * block) + u32::from(site % (2 * block) != 0))
                .max();
            assert_eq!(
                Some(config.most_sources(layers)),
                counted.map(u64::from),
                "{text} {layers}"
            );
            let text = format!(
                r#"{{"kind":"delta","granularity":"block","sublayers_per_block":{block}}}"#
            );
            let config: ResidualConfig = serde_json::from_str(&text).unwrap();
            let counted = (1..2 * layers).map(|site| 1 + site / block).max();
            assert_eq!(
                Some(config.most_sources(layers)),
                counted.map(u64::from),
                "{text} {layers}"
            );
        }
    }
}

#[test]
fn a_foreign_model_type_is_refused() {
    let text = SMALL.replacen('{', r#"{"model_type": "qwen3","#, 1);
    let message = ModelConfig::from_json(&text).unwrap_err().to_string();
    assert!(message.contains("qwen3"), "{message}");
}

fn any_residual() -> impl Strategy<Value = ResidualConfig> {
    (
        0..ResidualConfig::KINDS.len(),
        1..9_u32,
        any::<bool>(),
        -3.0..3.0_f64,
    )
        .prop_map(|(kind, number, flag, logit)| {
            let mut value =
                serde_json::to_value(ResidualConfig::of_kind(ResidualConfig::KINDS[kind]).unwrap())
                    .unwrap();
            for (key, entry) in value.as_object_mut().unwrap() {
                if key == "null_logit" {
                    *entry = logit.into();
                } else if entry.is_u64() {
                    *entry = number.into();
                } else if entry.is_boolean() {
                    *entry = flag.into();
                }
            }
            serde_json::from_value(value).unwrap()
        })
}

proptest! {
    #[test]
    fn files_of_configurations_round_trip(
        residual in any_residual(), vocab in 1..99_u32, kv in 1..4_u32, group in 1..4_u32, half in 1..9_u32,
        eps in 1e-8..1e-3_f64, tie in any::<bool>(),
    ) {
        let config = ModelConfig {
            vocab_size: vocab, num_attention_heads: kv * group, num_key_value_heads: kv, head_dim: 2 * half,
            rms_norm_eps: eps, tie_word_embeddings: tie, residual, ..small()
        };
        prop_assume!(config.validate().is_ok());
        prop_assert_eq!(ModelConfig::from_json(&config.to_json()).unwrap(), config);
    }
}
