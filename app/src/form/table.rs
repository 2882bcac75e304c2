//! The rows of the form: one a field, one a mechanism, one a task.

use super::Group::{Data, FeedForward, Mechanism, Optimiser, Schedule, Size};
use super::Initial::{Follows, Is, Needed};
use super::{Field, Group, Initial, Live};
use crate::config::FieldKind;

/// A value of `residual.kind` or `feed_forward.kind`, for people.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The value.
    pub kind: &'static str,
    /// The name that papers use.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
}

const fn kind(kind: &'static str, name: &'static str, summary: &'static str) -> Kind {
    Kind {
        kind,
        name,
        summary,
    }
}

#[rustfmt::skip] // one line each
/// The residual mechanisms, the ones to try first before the others.
pub const KINDS: &[Kind] = &[
    kind("dar", "Dual attention residuals", "two streams; each one's depth is chosen by keys of the other"),
    kind("delta", "Delta attention residuals", "an ordinary stream, plus a choice among what each sublayer added"),
    kind("attn_res", "Attention residuals", "each sublayer chooses among all earlier outputs; no stream"),
    kind("sep_v", "Attention residuals, own values", "attention residuals with a value map per site"),
    kind("standard", "Standard residual", "every sublayer adds its output to one stream"),
    kind("hyper_connections", "Hyper-connections", "several streams with learned reading, mixing and writing"),
    kind("mhc", "Manifold-constrained hyper-connections", "hyper-connections whose mixing keeps the mean of the streams"),
    kind("mhc2_matched", "mHC-2 matched", "two streams with the gates of DAR and no history: its control arm"),
    kind("dense_former", "DenseFormer", "after a layer, a learned average of all earlier layers"),
    kind("transparent", "Transparent attention", "learned softmax weights over layers, the same for all tokens"),
    kind("cumulative", "Cumulative mix", "a choice among running states: a control arm"),
];

#[rustfmt::skip] // one line each
/// The built-in tasks, with an example of each.
pub const TASKS: &[(&str, &str)] = &[
    ("recall", "look up the value of a key: a 3 h 5 .. h? 5"),
    ("copy", "repeat a list: d a f > d a f"),
    ("sort", "sort a list: d a f > a d f"),
    ("modular", "add modulo 10: 7+ 8= 5"),
    ("depth-recall", "look up a letter, and the letter that belongs to that one: a? c a?? d"),
];

/// In the order: key, label, unit.
type Name = (&'static str, &'static str, &'static str);

const fn row(name: Name, group: Group, live: Live, default: Initial) -> Field {
    Field {
        key: name.0,
        label: name.1,
        unit: name.2,
        group,
        advanced: false,
        live,
        default,
        // What `config::FIELDS` says.
        kind: FieldKind::Text,
        help: "",
        source: "",
        kinds: &[],
    }
}

/// A key of `[residual]` or `[feed_forward]`: `config::FIELDS` does not have it.
const fn own(
    name: Name,
    kinds: &'static [&'static str],
    kind: FieldKind,
    default: Initial,
    help: &'static str,
) -> Field {
    let group = match name.0.as_bytes()[0] {
        b'r' => Mechanism,
        _ => FeedForward,
    };
    Field {
        kinds,
        kind,
        help,
        ..row(name, group, SHAPE, default)
    }
}

impl Field {
    const fn advanced(self) -> Self {
        Self {
            advanced: true,
            ..self
        }
    }

    const fn source(self, source: &'static str) -> Self {
        Self { source, ..self }
    }

    const fn choice(self, words: &'static [&'static str]) -> Self {
        Self {
            kind: FieldKind::Choice(words),
            ..self
        }
    }
}

const fn from_to(low: f64, high: f64) -> FieldKind {
    FieldKind::Float {
        low,
        low_allowed: true,
        high,
        high_allowed: true,
    }
}

const SAFE: Live = Live::Safe;
const SHAPE: Live = Live::Locked("the parameters of the running model have another shape");
const MODEL: Live = Live::Locked("the running model computes with the old value");
const BUFFERS: Live = Live::Locked("the buffers of a step are planned before the first one");
const DATA: Live = Live::Locked("what the running model has learnt came from other data");
const SEED: Live = Live::Locked("the seed was used when the run began");
const MOMENTS: Live = Live::Locked("the optimiser has collected its moments with the old value");

const ADAMW: &str = "AdamW, arXiv 1711.05101";
const ATTN_RES: &str = "Attention Residuals, arXiv 2603.15031";
const DAR: &str = "Dual Attention Residuals, arXiv 2607.18730";
const MOE: &str = "Switch Transformers, arXiv 2101.03961";

#[rustfmt::skip] // one line each
/// All rows. A key of `[residual]` or `[feed_forward]` may have several, one for some kinds each.
pub const FIELD_ROWS: &[Field] = &[
    // [residual]
    own(("residual.kind", "mechanism", ""), &[], FieldKind::Choice(&[
        "dar", "delta", "attn_res", "sep_v", "standard", "hyper_connections", "mhc", "mhc2_matched", "dense_former",
        "transparent", "cumulative",
    ]), Is("\"dar\""), "how sublayers are joined through the depth"),
    own(("residual.layers_per_block", "block", "layers"), &["dar"], FieldKind::Int(1, 256), Is("1"),
        "layers in a block; 1 is the full form: every layer is a source").source(DAR),
    own(("residual.route", "keys and values", ""), &["dar"], FieldKind::Choice(&["dar", "self_kv", "cross_v", "fixed_kv"]),
        Is("\"dar\""), "which stream keys and values come from; dar: keys from the other stream, values from the own one").source(DAR),
    own(("residual.gates", "gates", ""), &["dar"], FieldKind::Choice(&["dynamic", "static"]), Is("\"dynamic\""),
        "whether the gates depend on the token").source(DAR).advanced(),
    own(("residual.include_partial", "read the partial sum", ""), &["dar"], FieldKind::Bool, Is("true"),
        "whether the unfinished block is a source").source(DAR).advanced(),
    own(("residual.sublayers_per_block", "block", "sublayers"), &["attn_res", "sep_v"], FieldKind::Int(1, 512), Is("1"),
        "sublayers in a block; 1 is the full form: every sublayer is a source"),
    own(("residual.granularity", "one source is", ""), &["delta"], FieldKind::Choice(&["sublayer", "block"]),
        Is("\"sublayer\""), "the output of one sublayer, or what a block of them added"),
    own(("residual.sublayers_per_block", "block", "sublayers"), &["delta"], FieldKind::Int(1, 512), Is("1"),
        "sublayers in a block; counts only if one source is a block"),
    own(("residual.mode", "weights", ""), &["delta"], FieldKind::Choice(&["plain", "centered", "null", "gated"]),
        Is("\"plain\""), "plain: softmax; centered: softmax - 1/n; null: one more source of value 0; gated: times a learned factor"),
    own(("residual.null_logit", "null logit", ""), &["delta"], from_to(-80.0, 80.0), Is("0.0"),
        "logit of the source of value 0; counts only with null").advanced(),
    own(("residual.streams", "streams", ""), &["hyper_connections", "mhc"], FieldKind::Int(1, 8), Is("2"),
        "copies of the stream that are read, mixed and written").source("Hyper-Connections, arXiv 2409.19606"),
    own(("residual.dynamic", "depends on the token", ""), &["hyper_connections"], FieldKind::Bool, Is("true"),
        "whether reading, mixing and writing depend on the token").source("Hyper-Connections, arXiv 2409.19606"),
    own(("residual.projection", "projection", ""), &["mhc"], FieldKind::Choice(&["sinkhorn", "exact2"]), Is("\"sinkhorn\""),
        "how the mixing matrix is made doubly stochastic; exact2: closed form for two streams"),
    own(("residual.sinkhorn_iters", "Sinkhorn iterations", ""), &["mhc"], FieldKind::Int(1, 100), Is("20"),
        "divisions of columns and rows by their sums").advanced(),
    own(("residual.init", "initial values", ""), &["mhc"], FieldKind::Choice(&["p0", "megatron", "mindformers", "mhc_lite"]),
        Is("\"p0\""), "p0: the standard model with streams that will part; the others as in the programs of these names").advanced(),
    own(("residual.weights", "weights", ""), &["attn_res"], FieldKind::Choice(&["softmax", "sigmoid", "static"]), Is("\"softmax\""),
        "how scores become weights; static: learned numbers, the same for all tokens").source(ATTN_RES).advanced(),
    own(("residual.key_norm", "normalise keys", ""), &["attn_res"], FieldKind::Bool, Is("true"),
        "whether the keys of the depth attention are normalised").source(ATTN_RES).advanced(),
    own(("residual.depth_heads", "depth heads", ""), &["attn_res"], FieldKind::Int(1, 256), Is("1"),
        "groups of channels that choose their depth separately; must divide the width").source(ATTN_RES).advanced(),
    own(("residual.window", "window", "sources"), &["attn_res"], FieldKind::Int(0, 64), Is("0"),
        "the newest so many sources and the embedding; 0: all").source(ATTN_RES).advanced(),
    own(("residual.evaluation", "evaluation", ""), &["attn_res"], FieldKind::Choice(&["single", "two_phase"]), Is("\"single\""),
        "two_phase: the finished blocks first, for all sites of a block; the same numbers").source(ATTN_RES).advanced(),
    own(("residual.dilation", "dilation", "layers"), &["dense_former"], FieldKind::Int(1, 256), Is("1"),
        "every how manieth earlier layer is read").source("DenseFormer, arXiv 2402.02622"),
    own(("residual.period", "period", "layers"), &["dense_former"], FieldKind::Int(1, 256), Is("1"),
        "after every how manieth layer an average is taken").source("DenseFormer, arXiv 2402.02622"),
    own(("residual.init", "initial weights", ""), &["transparent"], FieldKind::Choice(&["uniform", "recent"]),
        Is("\"uniform\""), "all the same, or the newest layer dominates"),
    own(("residual.weights", "weights", ""), &["transparent"], FieldKind::Choice(&["learned", "mean"]), Is("\"learned\""),
        "learned, or a fixed mean over all layers without parameters"),
    own(("residual.read", "the mix", ""), &["cumulative"], FieldKind::Choice(&["replace", "add"]), Is("\"replace\""),
        "whether it replaces or joins the state"),

    // [data]
    row(("data.task", "task", ""), Data, DATA, Is("\"recall\"")).choice(&["recall", "copy", "sort", "modular", "depth-recall"]),
    row(("data.file", "text", ""), Data, DATA, Follows("a task")),
    row(("data.tokenizer", "tokens", ""), Data, DATA, Follows("byte for a text")),
    row(("data.vocab", "vocabulary", "tokens"), Data, DATA, Follows("1024 for bpe")).source("BPE, arXiv 1508.07909"),
    row(("data.tokenizer_file", "tokenizer", ""), Data, DATA, Follows("none")).advanced(),
    row(("data.val_fraction", "kept for validation", "of the text"), Data, DATA, Is("0.1")).advanced(),

    // [model]
    row(("model.layers", "layers", ""), Size, SHAPE, Is("4")),
    row(("model.width", "width", "channels"), Size, SHAPE, Is("128")),
    row(("model.heads", "heads", ""), Size, SHAPE, Is("4")),
    row(("model.context", "context", "tokens"), Size, BUFFERS, Is("64")),
    row(("model.kv_heads", "key and value heads", ""), Size, SHAPE, Follows("as many as heads")).advanced().source("GQA, arXiv 2305.13245"),
    row(("model.head_dim", "head width", "channels"), Size, SHAPE, Follows("width / heads")).advanced(),
    row(("model.tie", "tie embeddings", ""), Size, SHAPE, Is("true")).advanced().source("arXiv 1608.05859"),
    row(("model.qk_norm", "norm of queries and keys", ""), Size, SHAPE, Is("true")).advanced().source("arXiv 2010.04245"),
    row(("model.eps", "eps of the norms", ""), Size, MODEL, Is("1e-6")).advanced().source("RMSNorm, arXiv 1910.07467"),
    row(("model.rope_theta", "rotary base", ""), Size, MODEL, Is("10000.0")).advanced().source("RoPE, arXiv 2104.09864"),
    row(("model.init_std", "initial spread", ""), Size, SEED, Is("0.02")).advanced(),

    // [feed_forward]
    own(("feed_forward.kind", "kind", ""), &[], FieldKind::Choice(&["swiglu", "moe"]), Is("\"swiglu\""),
        "one SwiGLU, or a mixture of experts").source("SwiGLU, arXiv 2002.05202"),
    row(("model.ffn", "hidden width", "channels"), FeedForward, SHAPE, Follows("64 ceil(8 width / 3 / 64)")),
    own(("feed_forward.experts", "experts", ""), &["moe"], FieldKind::Int(1, 256), Is("8"), "routed experts").source(MOE),
    own(("feed_forward.top_k", "per token", "experts"), &["moe"], FieldKind::Int(1, 256), Is("2"), "routed experts that a token uses").source(MOE),
    own(("feed_forward.intermediate_size", "expert width", "channels"), &["moe"], FieldKind::Int(1, 65_536), Needed("128"), "hidden width of each expert"),
    own(("feed_forward.gate", "gate", ""), &["moe"], FieldKind::Choice(&["softmax_topk", "softmax_topk_renorm", "sigmoid_bias"]),
        Is("\"softmax_topk_renorm\""), "how experts are selected and weighted").advanced(),
    own(("feed_forward.shared_experts", "shared experts", ""), &["moe"], FieldKind::Int(0, 64), Is("0"), "experts that every token uses").advanced(),
    own(("feed_forward.compute", "computed", ""), &["moe"], FieldKind::Choice(&["sorted", "dense"]), Is("\"sorted\""),
        "each expert on its own tokens, or every expert on every token; the same up to rounding").advanced(),
    own(("feed_forward.aux_loss", "balance loss", ""), &["moe"], from_to(0.0, 1e12), Is("0.01"), "coefficient of the balance loss; 0: off").advanced().source(MOE),
    own(("feed_forward.z_loss", "z-loss", ""), &["moe"], from_to(0.0, 1e12), Is("0.001"), "coefficient of the router's z-loss; 0: off").advanced().source("ST-MoE, arXiv 2202.08906"),
    own(("feed_forward.routed_scale", "scale of routed experts", ""), &["moe"], from_to(0.0, 1e12), Is("2.5"), "factor of their sum; counts only with sigmoid_bias").advanced().source("DeepSeek-V3, arXiv 2412.19437"),
    own(("feed_forward.bias_update_rate", "step of the bias", ""), &["moe"], from_to(0.0, 1e12), Is("0.001"), "step of the selection bias; counts only with sigmoid_bias").advanced().source("arXiv 2408.15664"),

    // [train]
    row(("train.lr", "learning rate", ""), Optimiser, SAFE, Is("1e-3")).source(ADAMW),
    row(("train.batch", "batch", "sequences"), Optimiser, BUFFERS, Is("12")),
    row(("train.accumulate", "accumulate", "passes"), Optimiser, BUFFERS, Is("1")).advanced(),
    row(("train.weight_decay", "weight decay", ""), Optimiser, MODEL, Is("0.1")).advanced().source(ADAMW),
    row(("train.beta1", "beta 1", ""), Optimiser, MOMENTS, Is("0.9")).advanced().source(ADAMW),
    row(("train.beta2", "beta 2", ""), Optimiser, MOMENTS, Is("0.95")).advanced().source(ADAMW),
    row(("train.adam_eps", "eps", ""), Optimiser, MOMENTS, Is("1e-8")).advanced().source(ADAMW),
    row(("train.optimizer", "optimiser", ""), Optimiser, MODEL, Is("\"adamw\"")).source("Muon: arXiv 2502.16982"),
    row(("train.muon_momentum", "Muon momentum", ""), Optimiser, MODEL, Is("0.95")).advanced(),
    row(("train.muon_scale", "Muon scale", ""), Optimiser, MODEL, Is("0.18")).advanced(),
    row(("train.muon_iterations", "Muon iterations", ""), Optimiser, MODEL, Is("\"jordan\"")).advanced(),
    row(("train.clip", "clip norm", ""), Optimiser, MODEL, Is("1.0")).advanced().source("arXiv 1211.5063"),
    row(("train.lr_mult.routing", "rate of the routing", "times"), Optimiser, MODEL, Is("1.0")).advanced(),
    row(("train.checkpoint", "recompute activations", ""), Optimiser, BUFFERS, Is("false")).advanced().source("arXiv 1604.06174"),
    row(("train.seed", "seed", ""), Optimiser, SEED, Is("1")),
    row(("train.steps", "steps", "updates"), Schedule, SAFE, Is("2000")),
    row(("train.schedule", "shape", ""), Schedule, SAFE, Is("\"cosine\"")).source("cosine: arXiv 1608.03983; wsd: arXiv 2404.06395"),
    row(("train.warmup", "warm-up", "updates"), Schedule, SAFE, Is("100")),
    row(("train.min_lr", "final rate", ""), Schedule, SAFE, Follows("1e-4, at most the learning rate")).advanced(),
    row(("train.eval_every", "validate every", "updates"), Schedule, SAFE, Is("200")),
    row(("train.eval_batches", "validation batches", ""), Schedule, SAFE, Is("20")).advanced(),
    row(("train.save_every", "save every", "updates"), Schedule, SAFE, Is("200")),
];
