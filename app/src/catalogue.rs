//! What there is to choose among: residual mechanisms and feed-forward sublayers, with their texts, their keys and their
//! parameters in a model of a given size. For `braid list` and the window.

use std::collections::BTreeMap;

use braid_engine::models::config::{FeedForwardConfig, ModelConfig, ResidualConfig};
use braid_engine::models::decoder;
use braid_engine::nn::residual::About;
use braid_engine::params::ParamSpec;
use braid_engine::{Error, Result};
use serde::Serialize;
use serde_json::Value;

use crate::config::RunConfig;

/// A kind of mechanism.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// `residual` or `feed_forward`: the section of the configuration.
    pub section: &'static str,
    /// The value of `kind` there.
    pub kind: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Where it is from; empty where there is no paper.
    pub paper: &'static str,
    /// The definition.
    pub equations: &'static str,
    /// What we chose where the paper is silent.
    pub choices: &'static [&'static str],
    /// Its settings.
    pub keys: Vec<Key>,
    /// Its parameters in this model.
    pub size: Size,
}

/// A setting of a kind.
#[derive(Clone, Debug, Serialize)]
pub struct Key {
    /// `residual.layers_per_block`
    pub name: String,
    /// The configuration's value, or the default of a kind that it does not choose.
    pub value: Value,
    /// The words that it may be, if it is one of a few.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
}

/// What a kind adds to a model.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// It can be trained.
    Parameters {
        /// Numbers, beside the rest of the model.
        count: usize,
        /// Its tensors, those of all layers together.
        tensors: Vec<Tensors>,
    },
    /// It cannot, and why.
    Impossible(String),
}

/// Tensors of one name in several layers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tensors {
    /// `model.layers.{i}.attn_res_proj.weight`
    pub name: String,
    /// Shape of each.
    pub shape: Vec<u32>,
    /// How many there are.
    pub count: usize,
}

/// All kinds, in the order of the format.
///
/// # Errors
/// Never for a configuration that was parsed.
pub fn catalogue(config: &RunConfig) -> Result<Vec<Entry>> {
    // Any vocabulary: the kinds' parameters do not depend on it.
    let model = config.model_config(1)?;
    let mut entries = Vec::new();
    for kind in ResidualConfig::KINDS {
        let residual = match config.residual.kind() == kind {
            true => config.residual.clone(),
            false => ResidualConfig::of_kind(kind).unwrap_or_default(),
        };
        let about = residual.about();
        let keys = keys("residual", serde_json::to_value(&residual));
        let with = ModelConfig {
            residual,
            ..model.clone()
        };
        let specs = with.validate().map(|()| with.residual.parameters(&with));
        entries.push(entry("residual", kind, about, keys, specs));
    }
    for kind in FeedForwardConfig::KINDS {
        let feed_forward = match config.feed_forward.kind() == kind {
            true => config.feed_forward.clone(),
            false => feed_forward(kind, config.model.ffn)?,
        };
        let about = feed_forward.about();
        let keys = keys("feed_forward", serde_json::to_value(&feed_forward));
        let with = ModelConfig {
            feed_forward,
            ..model.clone()
        };
        let sublayers = |spec: &ParamSpec| !spec.group.routing && spec.name.contains(".mlp.");
        let specs = with.validate().and_then(|()| decoder::parameters(&with));
        let specs = specs.map(|all| {
            all.specs()
                .iter()
                .filter(|spec| sublayers(spec))
                .cloned()
                .collect()
        });
        entries.push(entry("feed_forward", kind, about, keys, specs));
    }
    Ok(entries)
}

/// A kind that the configuration does not choose; experts are as wide as the model's own sublayers.
fn feed_forward(kind: &str, width: u32) -> Result<FeedForwardConfig> {
    let bare = serde_json::json!({ "kind": kind });
    let wide = serde_json::json!({ "kind": kind, "intermediate_size": width });
    serde_json::from_value(bare)
        .or_else(|_| serde_json::from_value(wide))
        .map_err(|error| Error::config("feed_forward.kind", error.to_string()))
}

fn entry(
    section: &'static str,
    kind: &'static str,
    about: About,
    keys: Vec<Key>,
    specs: Result<Vec<ParamSpec>>,
) -> Entry {
    let size = match specs {
        Ok(specs) => Size::Parameters {
            count: specs.iter().map(|spec| spec.shape.len()).sum(),
            tensors: tensors(&specs),
        },
        Err(error) => Size::Impossible(error.to_string()),
    };
    Entry {
        section,
        kind,
        summary: about.summary,
        paper: about.paper,
        equations: about.equations,
        choices: about.choices,
        keys,
        size,
    }
}

/// Put tensors together whose names differ in numbers of layers and experts only.
fn tensors(specs: &[ParamSpec]) -> Vec<Tensors> {
    let mut order = Vec::new();
    let mut counts = BTreeMap::<(String, Vec<u32>), usize>::new();
    for spec in specs {
        let mut letters = ["{i}", "{e}", "{j}"].into_iter();
        let parts = spec.name.split('.').map(|part| match part.parse::<u32>() {
            Ok(_) => letters.next().unwrap_or(part),
            Err(_) => part,
        });
        let key = (
            parts.collect::<Vec<_>>().join("."),
            spec.shape.dims().to_vec(),
        );
        let count = counts.entry(key.clone()).or_insert(0);
        if *count == 0 {
            order.push(key.clone());
        }
        *count += 1;
    }
    let tensors = |key: (String, Vec<u32>)| {
        let count = counts.get(&key).copied().unwrap_or(0);
        let (name, shape) = key;
        Tensors { name, shape, count }
    };
    order.into_iter().map(tensors).collect()
}

/// The keys of a kind but `kind`.
fn keys(section: &'static str, value: serde_json::Result<Value>) -> Vec<Key> {
    let Ok(Value::Object(all)) = value else {
        return Vec::new();
    };
    let keys = all.iter().filter(|(key, _)| *key != "kind");
    keys.map(|(key, value)| Key {
        name: format!("{section}.{key}"),
        value: value.clone(),
        words: match value {
            Value::String(_) => words(section, &all, key),
            _ => Vec::new(),
        },
    })
    .collect()
}

/// The words that a key may be: those that its reader names when it is given another one.
fn words(section: &str, all: &serde_json::Map<String, Value>, key: &str) -> Vec<String> {
    let mut wrong = all.clone();
    wrong.insert(key.into(), Value::from(""));
    let wrong = Value::Object(wrong);
    let error = match section {
        "residual" => serde_json::from_value::<ResidualConfig>(wrong).err(),
        _ => serde_json::from_value::<FeedForwardConfig>(wrong).err(),
    };
    let message = error.map(|error| error.to_string()).unwrap_or_default();
    let known = message
        .split_once("expected")
        .map_or("", |(_, known)| known);
    known
        .split('`')
        .skip(1)
        .step_by(2)
        .map(String::from)
        .collect()
}
