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

mod fields;
mod layers;
mod settings;

use braid_engine::data::{
    Dataset, Task, TaskKind, TextDataset, TextOptions, Tokenizer, TokenizerKind,
};
use braid_engine::models::config::{FeedForwardConfig, ModelConfig, ResidualConfig};
use braid_engine::nn::Batch;
use braid_engine::optim::{Iterations, Muon, Schedule, ScheduleKind, UpdateConfig};
use braid_engine::trainer::TrainConfig;
use braid_engine::{Error, Result};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

pub use fields::{FIELDS, Field, FieldKind};
use layers::{
    check, data_section, derive_model, derive_train, is_kind, leaves, mechanism, overlay,
    parse_setting, read, set,
};

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
    /// Tokens that BPE learns from the file; only with `tokenizer = "bpe"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vocab: Option<u32>,
    /// Path of a `tokenizer.json` that is used instead of learning one; only with `tokenizer = "bpe"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer_file: Option<String>,
    /// Share of a file, at its end, that is kept for validation.
    pub val_fraction: f64,
}

/// `[train]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainSection {
    /// What updates the hidden matrices; the rest is always AdamW's.
    pub optimizer: Optimizer,
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
    /// Decay of Muon's momentum.
    pub muon_momentum: f64,
    /// Root mean square of Muon's updates, over the learning rate.
    pub muon_scale: f64,
    /// Muon's Newton-Schulz iterations.
    pub muon_iterations: Iterations,
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

/// `train.optimizer`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Optimizer {
    /// AdamW for everything.
    AdamW,
    /// Muon for the hidden matrices.
    Muon,
}

/// `[train.lr_mult]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LrMult {
    /// Factor of every parameter of the residual mechanism.
    pub routing: f64,
}

/// The task of a run that names no data.
const DEFAULT_TASK: &str = "recall";

/// `data.vocab` of BPE: enough for short words, and small beside the default model.
const DEFAULT_VOCAB: u32 = 1024;

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
optimizer = "adamw"
steps = 2000
batch = 12
accumulate = 1
lr = 1e-3
warmup = 100
schedule = "cosine"
beta1 = 0.9
beta2 = 0.95
adam_eps = 1e-8
muon_momentum = 0.95
muon_scale = 0.18
muon_iterations = "jordan"
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

/// `eps = 0.000001` as `eps = 1e-6`; the number stays the same.
fn readable(line: &str) -> String {
    match line.split_once(" = ") {
        Some((key, value)) if value.starts_with("0.000") => match value.parse::<f64>() {
            Ok(number) => format!("{key} = {number:e}"),
            Err(_) => line.into(),
        },
        _ => line.into(),
    }
}

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
        Self::layered([file], settings)
    }

    /// As [`RunConfig::parse`], of several files: each is laid over those before it.
    ///
    /// # Errors
    /// As there.
    pub fn layered(layers: impl IntoIterator<Item = Table>, settings: &[String]) -> Result<Self> {
        let mut table: Table = DEFAULTS.parse().expect("the defaults are TOML");
        for layer in layers {
            overlay(&mut table, layer)?;
        }
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
        let section = |name: &str| {
            table
                .get(name)
                .cloned()
                .unwrap_or(Value::Table(Table::new()))
        };
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
        for (field, beta) in [
            ("train.beta1", train.beta1),
            ("train.beta2", train.beta2),
            ("train.muon_momentum", train.muon_momentum),
        ] {
            #[expect(clippy::cast_possible_truncation, reason = "what a GPU computes with")]
            let rounded = beta as f32;
            if rounded >= 1.0 {
                let message = format!(
                    "is {beta}, which is 1 in single precision; it must be below 0.9999999"
                );
                return Err(Error::config(field, message));
            }
        }
        if train.schedule != ScheduleKind::Constant && train.min_lr > train.lr {
            let message = format!(
                "is {}; it must be at most train.lr, {}",
                train.min_lr, train.lr
            );
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
        let text =
            toml::to_string(self).expect("a struct of numbers, texts and such structs is TOML");
        text.lines().map(|line| readable(line) + "\n").collect()
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
                muon: (train.optimizer == Optimizer::Muon).then_some(Muon {
                    momentum: train.muon_momentum,
                    scale: train.muon_scale,
                    iterations: train.muon_iterations,
                }),
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

    /// The data of this run.
    ///
    /// `text` is the content of `data.file`, not read for tasks; `vocabulary` is the tokenizer of a run that goes on, or
    /// that of `data.tokenizer_file`. `progress` hears of merges that BPE has learnt, and merges in all.
    ///
    /// # Errors
    /// If the task does not exist, or the text cannot be used.
    pub fn dataset(
        &self,
        text: &[u8],
        vocabulary: Option<&Tokenizer>,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Dataset> {
        let context = self.model.context as usize;
        match &self.data.file {
            Some(file) => {
                let name = std::path::Path::new(file).file_name();
                let options = TextOptions {
                    name: &name
                        .map_or_else(|| file.clone(), |name| name.to_string_lossy().into_owned()),
                    tokenizer: match self.data.tokenizer.as_deref() {
                        Some("char") => TokenizerKind::Char,
                        Some("bpe") => TokenizerKind::Bpe(self.data.vocab.unwrap_or(DEFAULT_VOCAB)),
                        _ => TokenizerKind::Byte,
                    },
                    vocabulary,
                    val_fraction: self.data.val_fraction,
                    context,
                };
                let text = TextDataset::with_progress(text, &options, progress)?;
                Ok(Dataset::Text(text))
            }
            None => {
                let kind = TaskKind::of(self.data.task.as_deref().unwrap_or(DEFAULT_TASK))?;
                Ok(Dataset::Task(Task::new(kind, context)?))
            }
        }
    }
}
