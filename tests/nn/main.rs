//! Whole models: the invariants of section 9 of the routing specification, and gradients of every class of parameter.

mod ablations;
mod costs;
mod counts;
mod experts;
mod gradients;
mod invariants;
mod memory;
mod same_start;
mod stream_vectors;
mod streams;
mod unfolded;
mod whole_layers;

/// Every mechanism and option that is implemented, with the number of layers to try it on (the last block is
/// unfinished in some), and some of them with each way to route tokens to experts.
///
/// Tests take the position as the seed, and some seeds draw models too badly conditioned for single precision: append.
pub const MECHANISMS: [(&str, u32); 49] = [
    (r#"{"kind": "standard"}"#, 2),
    (r#"{"kind": "attn_res", "sublayers_per_block": 1}"#, 3),
    (r#"{"kind": "attn_res", "sublayers_per_block": 2}"#, 3),
    (r#"{"kind": "attn_res", "sublayers_per_block": 3}"#, 4),
    (r#"{"kind": "attn_res", "sublayers_per_block": 8}"#, 4),
    (r#"{"kind": "delta", "mode": "plain"}"#, 3),
    (r#"{"kind": "delta", "mode": "centered"}"#, 3),
    (r#"{"kind": "delta", "mode": "null", "null_logit": 0.5}"#, 3),
    (r#"{"kind": "delta", "mode": "gated"}"#, 3),
    (
        r#"{"kind": "delta", "granularity": "block", "sublayers_per_block": 3}"#,
        4,
    ),
    (r#"{"kind": "dar", "layers_per_block": 1}"#, 3),
    (
        r#"{"kind": "dar", "layers_per_block": 2, "gates": "static"}"#,
        4,
    ),
    (r#"{"kind": "dar", "layers_per_block": 3}"#, 4),
    (
        r#"{"kind": "dar", "layers_per_block": 2, "include_partial": false}"#,
        3,
    ),
    (
        r#"{"kind": "dar", "layers_per_block": 1, "route": "self_kv"}"#,
        2,
    ),
    (
        r#"{"kind": "dar", "layers_per_block": 2, "route": "cross_v"}"#,
        2,
    ),
    (
        r#"{"kind": "dar", "layers_per_block": 1, "route": "fixed_kv"}"#,
        2,
    ),
    (r#"{"kind": "mhc2_matched"}"#, 2),
    (
        r#"{"kind": "hyper_connections", "streams": 2, "dynamic": false}"#,
        2,
    ),
    (r#"{"kind": "hyper_connections", "streams": 2}"#, 3),
    (r#"{"kind": "hyper_connections", "streams": 1}"#, 2),
    (r#"{"kind": "hyper_connections", "streams": 3}"#, 2),
    (r#"{"kind": "hyper_connections", "streams": 4}"#, 2),
    (r#"{"kind": "mhc", "streams": 1}"#, 2),
    (r#"{"kind": "mhc", "streams": 2}"#, 3),
    (
        r#"{"kind": "mhc", "streams": 2, "projection": "exact2"}"#,
        2,
    ),
    (r#"{"kind": "mhc", "streams": 3, "sinkhorn_iters": 5}"#, 2),
    (r#"{"kind": "mhc", "streams": 4}"#, 2),
    (r#"{"kind": "sep_v", "sublayers_per_block": 3}"#, 4),
    (r#"{"kind": "cumulative", "read": "replace"}"#, 3),
    (r#"{"kind": "cumulative", "read": "add"}"#, 3),
    (r#"{"kind": "dense_former"}"#, 3),
    (r#"{"kind": "dense_former", "dilation": 2}"#, 3),
    (r#"{"kind": "dense_former", "dilation": 2, "period": 2}"#, 5),
    (r#"{"kind": "transparent"}"#, 3),
    (r#"{"kind": "transparent", "init": "recent"}"#, 2),
    (r#"{"kind": "transparent", "weights": "mean"}"#, 3),
    (
        r#"{"kind": "standard"}, "feed_forward": {"kind": "moe", "experts": 4, "top_k": 1, "gate": "softmax_topk",
            "intermediate_size": 7, "aux_loss": 0.3, "z_loss": 0.2}"#,
        2,
    ),
    (
        r#"{"kind": "dar", "layers_per_block": 1}, "feed_forward": {"kind": "moe", "experts": 5, "top_k": 2,
            "shared_experts": 1, "intermediate_size": 6, "aux_loss": 0.3, "z_loss": 0.2}"#,
        2,
    ),
    (
        r#"{"kind": "delta", "mode": "gated"}, "feed_forward": {"kind": "moe", "experts": 6, "top_k": 3,
            "gate": "sigmoid_bias", "shared_experts": 2, "intermediate_size": 5, "aux_loss": 0.3, "z_loss": 0.2}"#,
        2,
    ),
    (
        r#"{"kind": "attn_res", "sublayers_per_block": 2, "weights": "sigmoid"}"#,
        3,
    ),
    (
        r#"{"kind": "attn_res", "sublayers_per_block": 3, "weights": "static"}"#,
        4,
    ),
    (r#"{"kind": "attn_res", "key_norm": false}"#, 3),
    (
        r#"{"kind": "attn_res", "sublayers_per_block": 2, "depth_heads": 3}"#,
        3,
    ),
    (
        r#"{"kind": "attn_res", "weights": "sigmoid", "key_norm": false, "depth_heads": 4, "window": 2}"#,
        3,
    ),
    (r#"{"kind": "attn_res", "window": 2}"#, 3),
    (
        r#"{"kind": "attn_res", "weights": "static", "window": 1}"#,
        2,
    ),
    (
        r#"{"kind": "attn_res", "sublayers_per_block": 3, "evaluation": "two_phase"}"#,
        4,
    ),
    (
        r#"{"kind": "attn_res", "sublayers_per_block": 4, "evaluation": "two_phase"}"#,
        4,
    ),
];
