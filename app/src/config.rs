//! The configuration of a run, as people write it (TOML), and its way to the engine.
//!
//! ```toml
//! [model]
//! layers = 6
//! [residual]
//! kind = "dar"
//! layers_per_block = 2
//! ```
//!
//! Everything has a default, so the empty file is a run. What is unknown, of the wrong type or out of range is refused with
//! the name of the field. `[residual]` and `[feed_forward]` have the keys of the engine's configuration.

use braid_engine::data::{Dataset, Task, TaskKind, TextDataset, TextOptions, Tokenizer, TokenizerKind};
use braid_engine::models::config::{FeedForwardConfig, ModelConfig, ResidualConfig};
use braid_engine::nn::Batch;
use braid_engine::optim::{Schedule, ScheduleKind, UpdateConfig};
use braid_engine::trainer::TrainConfig;
use braid_engine::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;
use toml::{Table, Value};

/// Everything about a run but its device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunConfig {
    /// Shape of the model.
    pub model: ModelSection,
    /// The residual mechanism.
    pub residual: ResidualConfig,
    /// The feed-forward sublayers.
    pub feed_forward: FeedForwardConfig,
    /// What is learnt.
    pub data: DataSection,
    /// How it is learnt.
    pub train: TrainSection,
}

/// `[model]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelSection {
    /// Layers: attention and feed-forward each.
    pub layers: u32,
    /// Width of the stream.
    pub width: u32,
    /// Query heads.
    pub heads: u32,
    /// Key and value heads.
    pub kv_heads: u32,
    /// Channels of a head.
    pub head_dim: u32,
    /// Hidden width of the SwiGLU.
    pub ffn: u32,
    /// Tokens that the model sees.
    pub context: u32,
    /// Whether the output matrix is the embedding.
    pub tie: bool,
    /// Whether queries and keys are normalised.
    pub qk_norm: bool,
    /// The eps of every norm.
    pub eps: f64,
    /// Base of the rotary embedding.
    pub rope_theta: f64,
    /// Standard deviation of random initial values.
    pub init_std: f64,
}

/// `[data]`: a built-in task or a text file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataSection {
    /// Name of a built-in task; absent with a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Path of a text; absent with a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// How a file is cut into tokens; absent with a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<String>,
    /// Share of a file, at its end, that is kept for validation.
    pub val_fraction: f64,
}

/// `[train]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainSection {
    /// Updates; the end of the schedule.
    pub steps: u64,
    /// Sequences of one pass.
    pub batch: u32,
    /// Passes per update.
    pub accumulate: u32,
    /// Largest learning rate.
    pub lr: f64,
    /// Learning rate at the end of a decay.
    pub min_lr: f64,
    /// Updates until the rate is reached.
    pub warmup: u64,
    /// Shape of the rate over time.
    pub schedule: ScheduleKind,
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub adam_eps: f64,
    /// Decay of the matrices.
    pub weight_decay: f64,
    /// Largest norm of the gradient; 0: no clipping.
    pub clip: f64,
    /// Seed of initial values and batches.
    pub seed: u64,
    /// Updates between two looks at the validation part.
    pub eval_every: u64,
    /// Validation batches; 0: the whole validation part.
    pub eval_batches: usize,
    /// Updates between two checkpoints.
    pub save_every: u64,
    /// Recompute activations instead of keeping them: slower, less memory.
    pub checkpoint: bool,
    /// Factors of the learning rate.
    pub lr_mult: LrMult,
}

/// `[train.lr_mult]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LrMult {
    /// Factor of every parameter of the residual mechanism.
    pub routing: f64,
}

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

/// Bounds included.
const fn float(key: &'static str, low: f64, high: f64, help: &'static str) -> Field {
    let kind = FieldKind::Float {
        low,
        low_allowed: true,
        high,
        high_allowed: true,
    };
    Field { key, kind, help }
}

/// The lower bound excluded, the upper one included.
const fn above(key: &'static str, low: f64, high: f64, help: &'static str) -> Field {
    let kind = FieldKind::Float {
        low,
        low_allowed: false,
        high,
        high_allowed: true,
    };
    Field { key, kind, help }
}

/// The lower bound included, the upper one excluded.
const fn below(key: &'static str, low: f64, high: f64, help: &'static str) -> Field {
    let kind = FieldKind::Float {
        low,
        low_allowed: true,
        high,
        high_allowed: false,
    };
    Field { key, kind, help }
}

const fn flag(key: &'static str, help: &'static str) -> Field {
    let kind = FieldKind::Bool;
    Field { key, kind, help }
}

const fn text(key: &'static str, help: &'static str) -> Field {
    let kind = FieldKind::Text;
    Field { key, kind, help }
}

const fn choice(
    key: &'static str,
    words: &'static [&'static str],
    help: &'static str,
) -> Field {
    let kind = FieldKind::Choice(words);
    Field { key, kind, help }
}

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
    choice("data.tokenizer", &["byte", "char"], "how a file is cut into tokens"),
    Field {
        key: "data.val_fraction",
        kind: FieldKind::Float {
            low: 0.0,
            low_allowed: false,
            high: 1.0,
            high_allowed: false,
        },
        help: "share of a file, at its end, kept for validation",
    },
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
    float("train.weight_decay", 0.0, 1e6, "decay of the matrices"),
    float("train.clip", 0.0, 1e12, "largest norm of the gradient; 0: no clipping"),
    int("train.seed", 0, i64::MAX, "seed of initial values and batches"),
    int("train.eval_every", 1, 1_000_000_000, "updates between two validations"),
    int("train.eval_batches", 0, 1_000_000_000, "validation batches; 0: the whole validation part"),
    int("train.save_every", 1, 1_000_000_000, "updates between two checkpoints"),
    flag("train.checkpoint", "recompute activations: slower, less memory"),
    float("train.lr_mult.routing", 0.0, 1e6, "factor of the rate of the residual mechanism"),
];

/// The task of a run that names no data.
const DEFAULT_TASK: &str = "recall";

/// The configuration of an empty file, as text: what is left out there follows from other fields.
const DEFAULTS: &str = r#"
[model]
layers = 4
width = 128
heads = 4
context = 64
tie = true
qk_norm = true
eps = 1e-6
rope_theta = 10000.0
init_std = 0.02
[residual]
kind = "dar"
layers_per_block = 2
[feed_forward]
kind = "swiglu"
[data]
val_fraction = 0.1
[train]
steps = 2000
batch = 12
accumulate = 1
lr = 1e-3
warmup = 100
schedule = "cosine"
beta1 = 0.9
beta2 = 0.95
adam_eps = 1e-8
weight_decay = 0.1
clip = 1.0
seed = 1
eval_every = 200
eval_batches = 20
save_every = 200
checkpoint = false
[train.lr_mult]
routing = 1.0
"#;

impl Default for RunConfig {
    fn default() -> Self {
        Self::parse("", &[]).expect("the defaults are a configuration")
    }
}

impl RunConfig {
    /// Read a file's text, then apply settings `a.b=v` in order, then fill in defaults.
    ///
    /// A setting of `residual.kind` or `feed_forward.kind` is applied first and resets the other keys of its section.
    ///
    /// # Errors
    /// Names the first field that is unknown, of the wrong type or out of range.
    pub fn parse(text: &str, settings: &[String]) -> Result<Self> {
        let file: Table = text.parse().map_err(|error: toml::de::Error| {
            Error::File(format!(
                "the configuration is not TOML: {}",
                error.to_string().trim_end()
            ))
        })?;
        let mut table: Table = DEFAULTS.parse().expect("the defaults are TOML");
        let mut layer = Table::new();
        for (key, value) in leaves(&file)? {
            set(&mut layer, &key, value);
        }
        overlay(&mut table, layer)?;
        let mut settings = settings
            .iter()
            .map(|setting| parse_setting(setting))
            .collect::<Result<Vec<_>>>()?;
        // Stable: other settings keep their order.
        settings.sort_by_key(|(key, _)| !is_kind(key));
        for (key, value) in settings {
            let mut layer = Table::new();
            set(&mut layer, &key, value);
            overlay(&mut table, layer)?;
        }
        Self::from_table(&table)
    }

    fn from_table(table: &Table) -> Result<Self> {
        for (key, value) in leaves(table)? {
            check(&key, &value)?;
        }
        let section = |name: &str| table.get(name).cloned().unwrap_or(Value::Table(Table::new()));
        let mut model = section("model");
        derive_model(&mut model)?;
        let mut train = section("train");
        derive_train(&mut train);
        let data = data_section(section("data"))?;
        let config = Self {
            model: read("model", model)?,
            residual: mechanism("residual", &section("residual"))?,
            feed_forward: mechanism("feed_forward", &section("feed_forward"))?,
            data,
            train: read("train", train)?,
        };
        config.validate()?;
        Ok(config)
    }

    /// Refuse combinations that cannot work. `parse` has done it.
    ///
    /// # Errors
    /// Names the field and what it may be.
    pub fn validate(&self) -> Result<()> {
        // Everything about the model but its vocabulary.
        self.model_config(1)?;
        let train = &self.train;
        for (field, beta) in [("train.beta1", train.beta1), ("train.beta2", train.beta2)] {
            #[expect(clippy::cast_possible_truncation, reason = "what a GPU computes with")]
            let rounded = beta as f32;
            if rounded >= 1.0 {
                let message =
                    format!("is {beta}, which is 1 in single precision; it must be below 0.9999999");
                return Err(Error::config(field, message));
            }
        }
        if train.schedule != ScheduleKind::Constant && train.min_lr > train.lr {
            let message = format!("is {}; it must be at most train.lr, {}", train.min_lr, train.lr);
            return Err(Error::config("train.min_lr", message));
        }
        let rows = u64::from(train.batch) * u64::from(self.model.context);
        if rows > 1 << 24 {
            let message = format!(
                "times model.context is {rows} tokens; one pass takes at most {}: lower it and raise train.accumulate",
                1 << 24
            );
            return Err(Error::config("train.batch", message));
        }
        Ok(())
    }

    /// The effective configuration, all keys written out: it reads back as the same.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a struct of numbers, texts and such structs is TOML")
    }

    /// The engine's configuration, for a vocabulary of this size.
    ///
    /// # Errors
    /// If a value is impossible.
    pub fn model_config(&self, vocab_size: u32) -> Result<ModelConfig> {
        let model = &self.model;
        let config = ModelConfig {
            model_type: "braid".into(),
            vocab_size,
            hidden_size: model.width,
            intermediate_size: model.ffn,
            num_hidden_layers: model.layers,
            num_attention_heads: model.heads,
            num_key_value_heads: model.kv_heads,
            head_dim: model.head_dim,
            rms_norm_eps: model.eps,
            rope_theta: model.rope_theta,
            tie_word_embeddings: model.tie,
            qk_norm: model.qk_norm,
            initializer_range: model.init_std,
            residual: self.residual.clone(),
            feed_forward: self.feed_forward.clone(),
        };
        config.validate()?;
        Ok(config)
    }

    /// Sequences and tokens of one pass.
    #[must_use]
    pub fn batch(&self) -> Batch {
        Batch {
            sequences: self.train.batch,
            context: self.model.context,
        }
    }

    /// The engine's training settings.
    #[must_use]
    pub fn train_config(&self) -> TrainConfig {
        let train = &self.train;
        TrainConfig {
            batch: self.batch(),
            accumulate: train.accumulate,
            checkpoint: train.checkpoint,
            schedule: Schedule {
                kind: train.schedule,
                lr: train.lr,
                min_lr: train.min_lr,
                warmup: train.warmup,
                steps: train.steps,
            },
            update: UpdateConfig {
                beta1: train.beta1,
                beta2: train.beta2,
                eps: train.adam_eps,
                weight_decay: train.weight_decay,
                clip: train.clip,
                routing_lr_mult: train.lr_mult.routing,
            },
            seed: train.seed,
            eval_batches: train.eval_batches,
        }
    }

    /// A word for the data: the task, or the name of the file without its ending.
    #[must_use]
    pub fn data_name(&self) -> String {
        match (&self.data.task, &self.data.file) {
            (_, Some(file)) => std::path::Path::new(file)
                .file_stem()
                .map_or_else(|| "file".into(), |stem| stem.to_string_lossy().into_owned()),
            (Some(task), None) => task.clone(),
            (None, None) => DEFAULT_TASK.into(),
        }
    }
}

fn is_kind(key: &str) -> bool {
    key == "residual.kind" || key == "feed_forward.kind"
}

/// `a.b=v`, `v` as in TOML; a word that is not TOML is a text, so that shells need fewer quotes.
fn parse_setting(setting: &str) -> Result<(String, Value)> {
    let malformed = || {
        Error::File(format!(
            "`--set {setting}`: write it as section.key=value, such as model.layers=6"
        ))
    };
    let (key, value) = setting.split_once('=').ok_or_else(malformed)?;
    let (key, value) = (key.trim(), value.trim());
    if !key.contains('.') && !SECTIONS.contains(&key) {
        return Err(unknown(key));
    }
    if value.is_empty() || SECTIONS.contains(&key) {
        return Err(malformed());
    }
    let parsed = format!("value = {value}").parse::<Table>();
    let value = match parsed.ok().and_then(|mut table| table.remove("value")) {
        Some(value) => value,
        None => Value::String(value.into()),
    };
    Ok((key.into(), value))
}

const SECTIONS: [&str; 5] = ["model", "residual", "feed_forward", "data", "train"];

/// All keys that are not tables, by their full names. Refuses unknown ones.
fn leaves(table: &Table) -> Result<Vec<(String, Value)>> {
    fn walk(prefix: &str, table: &Table, all: &mut Vec<(String, Value)>) {
        for (key, value) in table {
            let key = if prefix.is_empty() {
                key.clone()
            } else {
                format!("{prefix}.{key}")
            };
            match value {
                Value::Table(inner) => walk(&key, inner, all),
                _ => all.push((key, value.clone())),
            }
        }
    }
    for (name, value) in table {
        if !SECTIONS.contains(&name.as_str()) {
            return Err(unknown(name));
        }
        if !value.is_table() {
            let message = format!("is {}; it must be a table, [{name}]", shown(value));
            return Err(Error::config(name, message));
        }
    }
    let mut all = Vec::new();
    walk("", table, &mut all);
    Ok(all)
}

/// Put a value at `a.b.c`.
fn set(table: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            table.insert(key.into(), value);
        }
        Some((head, rest)) => {
            let entry = table
                .entry(head)
                .or_insert_with(|| Value::Table(Table::new()));
            if !entry.is_table() {
                *entry = Value::Table(Table::new());
            }
            if let Value::Table(inner) = entry {
                set(inner, rest, value);
            }
        }
    }
}

/// Lay one layer of settings over another. A new kind, or new data, takes its section's other keys with it.
fn overlay(base: &mut Table, layer: Table) -> Result<()> {
    for name in ["residual", "feed_forward"] {
        if layer.get(name).is_some_and(|section| section.get("kind").is_some()) {
            base.insert(name.into(), Value::Table(Table::new()));
        }
    }
    if let Some(Value::Table(data)) = layer.get("data") {
        let (task, file) = (data.contains_key("task"), data.contains_key("file"));
        if task && file {
            return Err(Error::config("data.file", "and data.task are both given; use one of them"));
        }
        if let Some(Value::Table(old)) = base.get_mut("data") {
            if task {
                old.remove("file");
                old.remove("tokenizer");
            }
            if file {
                old.remove("task");
            }
        }
    }
    for (key, value) in leaves(&layer)? {
        set(base, &key, value);
    }
    Ok(())
}

/// A key that no section has, with the nearest one that exists.
fn unknown(key: &str) -> Error {
    let mut known: Vec<String> = FIELDS.iter().map(|field| field.key.to_owned()).collect();
    for kind in ResidualConfig::KINDS {
        known.extend(keys_of("residual", kind).into_iter().map(|key| format!("residual.{key}")));
    }
    for kind in FeedForwardConfig::KINDS {
        known.extend(keys_of("feed_forward", kind).into_iter().map(|key| format!("feed_forward.{key}")));
    }
    if !key.contains('.') {
        known.extend(SECTIONS.map(String::from));
    }
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    // A right key in the wrong section is nearer than a like key in the right one.
    let distance = |other: &str| {
        let whole = strsim::damerau_levenshtein(key, other);
        if last(key) == last(other) { whole.min(1) } else { whole }
    };
    let nearest = known.iter().min_by_key(|other| distance(other));
    let hint = match nearest {
        Some(nearest) if distance(nearest) <= 3 + key.len() / 2 => format!("; did you mean {nearest}?"),
        _ => String::new(),
    };
    Error::config(key, format!("there is no such setting{hint}"))
}

/// A value for people.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{text}\""),
        Value::Float(number) => format!("{number}"),
        other => other.to_string(),
    }
}

/// Type and range of one field outside of the mechanisms' sections.
fn check(key: &str, value: &Value) -> Result<()> {
    if key.starts_with("residual.") || key.starts_with("feed_forward.") {
        return Ok(());
    }
    let Some(field) = FIELDS.iter().find(|field| field.key == key) else {
        return Err(unknown(key));
    };
    let refuse = |wanted: String| {
        Err(Error::config(key, format!("is {}; it must be {wanted}", shown(value))))
    };
    match field.kind {
        FieldKind::Bool if !value.is_bool() => refuse("true or false".into()),
        FieldKind::Text if !value.as_str().is_some_and(|text| !text.is_empty()) => refuse("a text".into()),
        FieldKind::Choice(words) if !value.as_str().is_some_and(|word| words.contains(&word)) => {
            refuse(format!("one of {}", words.join(", ")))
        }
        FieldKind::Int(low, high) if !value.as_integer().is_some_and(|n| (low..=high).contains(&n)) => {
            let range = if high == i64::MAX {
                format!("a whole number, {low} or more")
            } else {
                format!("a whole number between {low} and {high}")
            };
            refuse(range)
        }
        FieldKind::Float {
            low,
            low_allowed,
            high,
            high_allowed,
        } => {
            #[expect(clippy::cast_precision_loss, reason = "a setting that a person wrote")]
            let number = value.as_float().or(value.as_integer().map(|n| n as f64));
            // Written so that NaN is refused as well.
            let good = number.is_some_and(|x| {
                (x > low || (low_allowed && x == low)) && (x < high || (high_allowed && x == high))
            });
            if good {
                return Ok(());
            }
            let lower = if low_allowed { format!("at least {low}") } else { format!("more than {low}") };
            let upper = if high_allowed { format!("at most {high}") } else { format!("less than {high}") };
            refuse(format!("a number, {lower} and {upper}"))
        }
        _ => Ok(()),
    }
}

/// Fields of `[model]` that follow from others.
fn derive_model(model: &mut Value) -> Result<()> {
    let Value::Table(model) = model else {
        return Ok(());
    };
    let number = |model: &Table, key: &str| model.get(key).and_then(Value::as_integer);
    let width = number(model, "width").unwrap_or(1);
    let heads = number(model, "heads").unwrap_or(1).max(1);
    if number(model, "kv_heads").is_none() {
        model.insert("kv_heads".into(), Value::Integer(heads));
    }
    if number(model, "head_dim").is_none() {
        if width % heads != 0 {
            let message = format!("is {heads}; it must divide model.width, {width}, or set model.head_dim");
            return Err(Error::config("model.heads", message));
        }
        let head_dim = width / heads;
        if head_dim % 2 != 0 || !(2..=128).contains(&head_dim) {
            let message = format!(
                "is {heads}: a head would have width / heads = {head_dim} channels; they must be an even number \
                 between 2 and 128, or set model.head_dim"
            );
            return Err(Error::config("model.heads", message));
        }
        model.insert("head_dim".into(), Value::Integer(head_dim));
    }
    if number(model, "ffn").is_none() {
        let ffn = 64 * (8 * width).div_ceil(3 * 64);
        model.insert("ffn".into(), Value::Integer(ffn));
    }
    Ok(())
}

/// Fields of `[train]` that follow from others.
fn derive_train(train: &mut Value) {
    let Value::Table(train) = train else {
        return;
    };
    if !train.contains_key("min_lr") {
        #[expect(clippy::cast_precision_loss, reason = "a setting that a person wrote")]
        let lr = train
            .get("lr")
            .and_then(|lr| lr.as_float().or(lr.as_integer().map(|n| n as f64)))
            .unwrap_or(1.0);
        train.insert("min_lr".into(), Value::Float(lr.min(1e-4)));
    }
}

fn data_section(data: Value) -> Result<DataSection> {
    let mut data: DataSection = read("data", data)?;
    match (&data.task, &data.file) {
        (None, Some(_)) => {
            data.tokenizer.get_or_insert_with(|| "byte".into());
        }
        (None, None) => data.task = Some(DEFAULT_TASK.into()),
        _ => {}
    }
    if let (Some(task), Some(tokenizer)) = (&data.task, &data.tokenizer) {
        let message = format!("is \"{tokenizer}\", but the task {task} has tokens of its own; it is for files");
        return Err(Error::config("data.tokenizer", message));
    }
    Ok(data)
}

/// A section whose values have been checked.
fn read<T: serde::de::DeserializeOwned>(section: &str, value: Value) -> Result<T> {
    value.try_into().map_err(|error: toml::de::Error| {
        Error::config(section, error.message().to_owned())
    })
}

/// Keys of a mechanism, `kind` among them.
fn keys_of(section: &str, kind: &str) -> Vec<String> {
    let value = match section {
        "residual" => ResidualConfig::of_kind(kind).map(|config| serde_json::to_value(config).ok()),
        _ => serde_json::from_value::<FeedForwardConfig>(with_required(section, kind))
            .ok()
            .map(|config| serde_json::to_value(config).ok()),
    };
    match value.flatten() {
        Some(serde_json::Value::Object(map)) => map.keys().cloned().collect(),
        _ => vec!["kind".into()],
    }
}

/// The least object of a kind that the engine reads.
fn with_required(section: &str, kind: &str) -> serde_json::Value {
    if section == "feed_forward" && kind == "moe" {
        json!({ "kind": kind, "intermediate_size": 1 })
    } else {
        json!({ "kind": kind })
    }
}

/// `[residual]` or `[feed_forward]`.
fn mechanism<T: serde::de::DeserializeOwned>(section: &str, value: &Value) -> Result<T> {
    let kinds: &[&str] = match section {
        "residual" => &ResidualConfig::KINDS,
        _ => &FeedForwardConfig::KINDS,
    };
    let field = |key: &str| format!("{section}.{key}");
    let Value::Table(table) = value else {
        return Err(Error::config(section, "must be a table"));
    };
    let Some(kind) = table.get("kind") else {
        let message = format!("is missing; it is one of {}", kinds.join(", "));
        return Err(Error::config(field("kind"), message));
    };
    let Some(kind) = kind.as_str().filter(|kind| kinds.contains(kind)) else {
        let nearest = kind.as_str().and_then(|kind| {
            let near = kinds.iter().min_by_key(|other| strsim::damerau_levenshtein(kind, other))?;
            (strsim::damerau_levenshtein(kind, near) <= 3).then(|| format!("; did you mean {near}?"))
        });
        let message = format!(
            "is {}; it must be one of {}{}",
            shown(kind),
            kinds.join(", "),
            nearest.unwrap_or_default()
        );
        return Err(Error::config(field("kind"), message));
    };
    let known = keys_of(section, kind);
    for (key, value) in table {
        if !known.contains(key) {
            let others: Vec<&String> = known.iter().filter(|key| *key != "kind").collect();
            let near = others.iter().min_by_key(|other| strsim::damerau_levenshtein(key, other));
            let hint = match near {
                None => format!("; {kind} has no settings"),
                Some(near) if strsim::damerau_levenshtein(key, near) <= 3 + key.len() / 3 => {
                    format!("; did you mean {section}.{near}?")
                }
                Some(_) => {
                    let names: Vec<&str> = others.iter().map(|key| key.as_str()).collect();
                    format!("; its settings are {}", names.join(", "))
                }
            };
            return Err(Error::config(field(key), format!("{kind} has no such setting{hint}")));
        }
        // One key at a time, so that the engine's complaint can be given a name.
        let mut one = with_required(section, kind);
        one[key] = serde_json::to_value(value).unwrap_or_default();
        if let Err(error) = serde_json::from_value::<T>(one) {
            return Err(Error::config(field(key), format!("is {}: {error}", shown(value))));
        }
    }
    let value = serde_json::to_value(table).unwrap_or_default();
    serde_json::from_value(value).map_err(|error| Error::config(section, error.to_string()))
}

impl RunConfig {
    /// The data of this run.
    ///
    /// `text` is the content of `data.file`, not read for tasks; `vocabulary` is the tokenizer of a run that goes on.
    ///
    /// # Errors
    /// If the task does not exist, or the text cannot be used.
    pub fn dataset(&self, text: &[u8], vocabulary: Option<&Tokenizer>) -> Result<Dataset> {
        let context = self.model.context as usize;
        match &self.data.file {
            Some(file) => {
                let name = std::path::Path::new(file).file_name();
                let options = TextOptions {
                    name: &name.map_or_else(|| file.clone(), |name| name.to_string_lossy().into_owned()),
                    tokenizer: match self.data.tokenizer.as_deref() {
                        Some("char") => TokenizerKind::Char,
                        _ => TokenizerKind::Byte,
                    },
                    vocabulary,
                    val_fraction: self.data.val_fraction,
                    context,
                };
                Ok(Dataset::Text(TextDataset::new(text, &options)?))
            }
            None => {
                let kind = TaskKind::of(self.data.task.as_deref().unwrap_or(DEFAULT_TASK))?;
                Ok(Dataset::Task(Task::new(kind, context)?))
            }
        }
    }
}
