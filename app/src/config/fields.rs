//! The fields of a configuration: type, range and a line of help each.
//!
//! `[residual]` and `[feed_forward]` are the engine's and are not listed here.

/// What a field holds, and its range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldKind {
    /// A whole number, bounds included.
    Int(i64, i64),
    /// A number between the bounds; the flags say whether a bound itself is allowed.
    Float {
        /// Lower bound.
        low: f64,
        /// Whether the lower bound is allowed.
        low_allowed: bool,
        /// Upper bound.
        high: f64,
        /// Whether the upper bound is allowed.
        high_allowed: bool,
    },
    /// `true` or `false`.
    Bool,
    /// Any text.
    Text,
    /// One of a few words.
    Choice(&'static [&'static str]),
}

/// A key of the configuration outside of `[residual]` and `[feed_forward]`.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// `model.layers`
    pub key: &'static str,
    /// Type and range.
    pub kind: FieldKind,
    /// One line of help.
    pub help: &'static str,
}

const fn int(key: &'static str, low: i64, high: i64, help: &'static str) -> Field {
    let kind = FieldKind::Int(low, high);
    Field { key, kind, help }
}

const fn number(
    key: &'static str,
    low: (f64, bool),
    high: (f64, bool),
    help: &'static str,
) -> Field {
    let kind = FieldKind::Float {
        low: low.0,
        low_allowed: low.1,
        high: high.0,
        high_allowed: high.1,
    };
    Field { key, kind, help }
}

/// Both bounds allowed.
const fn float(key: &'static str, low: f64, high: f64, help: &'static str) -> Field {
    number(key, (low, true), (high, true), help)
}

/// The lower bound not allowed.
const fn above(key: &'static str, low: f64, high: f64, help: &'static str) -> Field {
    number(key, (low, false), (high, true), help)
}

/// The upper bound not allowed.
const fn below(key: &'static str, low: f64, high: f64, help: &'static str) -> Field {
    number(key, (low, true), (high, false), help)
}

/// No bound allowed.
const fn between(key: &'static str, low: f64, high: f64, help: &'static str) -> Field {
    number(key, (low, false), (high, false), help)
}

const fn flag(key: &'static str, help: &'static str) -> Field {
    let kind = FieldKind::Bool;
    Field { key, kind, help }
}

const fn text(key: &'static str, help: &'static str) -> Field {
    let kind = FieldKind::Text;
    Field { key, kind, help }
}

const fn choice(key: &'static str, words: &'static [&'static str], help: &'static str) -> Field {
    let kind = FieldKind::Choice(words);
    Field { key, kind, help }
}

#[rustfmt::skip] // one line each
/// Every field outside of `[residual]` and `[feed_forward]`, in the order of the file.
pub const FIELDS: &[Field] = &[
    int("model.layers", 1, 256, "layers: attention and feed-forward each"),
    int("model.width", 1, 16_384, "width of the stream"),
    int("model.heads", 1, 256, "query heads"),
    int("model.kv_heads", 1, 256, "key and value heads; default: as many as heads"),
    int("model.head_dim", 2, 128, "channels of a head, even; default: width / heads"),
    int("model.ffn", 1, 65_536, "hidden width of the SwiGLU; default: 64 ceil(8 width / 3 / 64)"),
    int("model.context", 1, 65_536, "tokens that the model sees"),
    flag("model.tie", "use the embedding as output matrix"),
    flag("model.qk_norm", "normalise queries and keys per head"),
    float("model.eps", 1e-12, 1.0, "the eps of every norm"),
    float("model.rope_theta", 1.0, 1e9, "base of the rotary embedding"),
    float("model.init_std", 0.0, 10.0, "standard deviation of initial values"),
    text("data.task", "a built-in task"),
    text("data.file", "path of a text"),
    choice("data.tokenizer", &["byte", "char", "bpe"], "how a file is cut into tokens"),
    int("data.vocab", 256, 32_768, "tokens that bpe learns from the file; default: 1024"),
    text("data.tokenizer_file", "path of a tokenizer.json for bpe, instead of learning one"),
    between("data.val_fraction", 0.001, 0.999, "share of a file, at its end, kept for validation"),
    choice("train.optimizer", &["adamw", "muon"], "muon: for the hidden matrices, with adamw for the rest"),
    int("train.steps", 1, 1_000_000_000, "updates; the end of the schedule"),
    int("train.batch", 1, 65_536, "sequences of one pass"),
    int("train.accumulate", 1, 65_536, "passes per update"),
    above("train.lr", 0.0, 1e12, "largest learning rate"),
    float("train.min_lr", 0.0, 1e12, "learning rate at the end of a decay; default: 1e-4, at most lr"),
    int("train.warmup", 0, 1_000_000_000, "updates until the rate is reached"),
    choice("train.schedule", &["cosine", "wsd", "constant"], "shape of the rate over time"),
    below("train.beta1", 0.0, 1.0, "decay of AdamW's first moment"),
    below("train.beta2", 0.0, 1.0, "decay of AdamW's second moment"),
    float("train.adam_eps", 1e-30, 1.0, "added to the root of the second moment"),
    below("train.muon_momentum", 0.0, 1.0, "decay of Muon's momentum"),
    float("train.muon_scale", 0.0, 1e6, "root mean square of Muon's updates, times the rate"),
    choice("train.muon_iterations", &["jordan", "v4"], "Newton-Schulz: jordan (5), or v4 (8, then 2 that settle)"),
    float("train.weight_decay", 0.0, 1e6, "decay of the matrices"),
    float("train.clip", 0.0, 1e12, "largest norm of the gradient; 0: no clipping"),
    int("train.seed", 0, i64::MAX, "seed of initial values and batches"),
    int("train.eval_every", 1, 1_000_000_000, "updates between two validations"),
    int("train.eval_batches", 0, 1_000_000_000, "validation batches; 0: the whole validation part"),
    int("train.save_every", 1, 1_000_000_000, "updates between two checkpoints"),
    flag("train.checkpoint", "recompute activations: slower, less memory"),
    float("train.lr_mult.routing", 0.0, 1e6, "factor of the rate of the residual mechanism"),
];
