//! Checkpoints: safetensors bytes to and from parameters, moments and the state of a run.
//!
//! `model.safetensors` holds the parameters under their names, `optimizer.safetensors` both Adam moments as `m.<name>` and
//! `v.<name>`, `state.json` everything else. Random numbers need no state: each stream follows from the seed and the step.
//! Files are the caller's business.

use std::collections::BTreeMap;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::params::{ParamSpec, Parameters};

/// Version of `state.json`.
pub const SCHEMA: u32 = 1;

/// What a run is besides its tensors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Version of this record.
    pub schema: u32,
    /// Updates done.
    pub step: u64,
    /// Seed of initial values and batches; with the step, it is the random state and the data cursor.
    pub seed: u64,
    /// Hash of the training data and its tokens.
    pub data: String,
    /// Best validation loss so far and its step.
    pub best: Option<(f64, u64)>,
    /// Device that computed it: another one gives other bits.
    pub device: String,
}

/// Tensors of one checkpoint, arenas in the layout of [`Parameters`].
#[derive(Clone, Debug, PartialEq)]
pub struct Tensors {
    /// Parameters.
    pub values: Vec<f32>,
    /// First and second moments; absent in a checkpoint of weights only.
    pub moments: Option<(Vec<f32>, Vec<f32>)>,
}

/// The parameters in a file whose names begin with `prefix`: all of the model's, and for moments those that have some.
fn listed<'a>(
    parameters: &'a Parameters,
    prefix: &str,
) -> impl Iterator<Item = (usize, &'a ParamSpec)> {
    let all = parameters.specs().iter().enumerate();
    let values = prefix.is_empty();
    all.filter(move |(_, spec)| values || !spec.group.untrained)
}

/// One arena as a safetensors file, each name behind `prefix`.
fn serialize(parameters: &Parameters, arenas: &[(&str, &[f32])]) -> Result<Vec<u8>> {
    let mut parts = Vec::new();
    for &(prefix, arena) in arenas {
        for (number, spec) in listed(parameters, prefix) {
            let bytes: Vec<u8> = arena[parameters.range(number)]
                .iter()
                .flat_map(|v| v.to_le_bytes())
                .collect();
            parts.push((format!("{prefix}{}", spec.name), spec.shape, bytes));
        }
    }
    let broken = |error: safetensors::SafeTensorError| {
        Error::File(format!("the checkpoint cannot be written: {error}"))
    };
    let mut views = BTreeMap::new();
    for (name, shape, bytes) in &parts {
        let shape = shape.dims().iter().map(|&dim| dim as usize).collect();
        views.insert(
            name.as_str(),
            TensorView::new(Dtype::F32, shape, bytes).map_err(broken)?,
        );
    }
    // One entry: the library writes several in an order that differs from run to run, and files are to be equal.
    let about = [("format".to_owned(), "pt".to_owned())];
    safetensors::serialize(views, Some(about.into_iter().collect())).map_err(broken)
}

/// `model.safetensors`.
///
/// # Errors
/// If the values do not fit the parameters.
pub fn model_file(parameters: &Parameters, values: &[f32]) -> Result<Vec<u8>> {
    serialize(parameters, &[("", values)])
}

/// `optimizer.safetensors`.
///
/// # Errors
/// If the moments do not fit the parameters.
pub fn optimizer_file(parameters: &Parameters, first: &[f32], second: &[f32]) -> Result<Vec<u8>> {
    serialize(parameters, &[("m.", first), ("v.", second)])
}

/// A file cut short or overwritten.
fn parse<'a>(bytes: &'a [u8], file: &str) -> Result<SafeTensors<'a>> {
    SafeTensors::deserialize(bytes).map_err(|error| {
        let len = bytes.len();
        Error::File(format!(
            "{file} ({len} bytes) is not a complete safetensors file ({error}); use another checkpoint of the run"
        ))
    })
}

/// Read the arena of a file whose names start with `prefix`.
fn arena(
    parameters: &Parameters,
    parsed: &SafeTensors<'_>,
    file: &str,
    prefix: &str,
) -> Result<Vec<f32>> {
    let mut arena = vec![0.0; parameters.arena_len()];
    for (number, spec) in listed(parameters, prefix) {
        let name = format!("{prefix}{}", spec.name);
        let Ok(view) = parsed.tensor(&name) else {
            return Err(Error::File(format!(
                "{file} lacks `{name}`{}",
                other_mechanism(parameters, parsed, prefix)
            )));
        };
        let shape: Vec<usize> = spec.shape.dims().iter().map(|&dim| dim as usize).collect();
        if view.shape() != shape {
            let message = format!(
                "{file}: `{name}` has shape {:?}, this model has {shape:?}",
                view.shape()
            );
            return Err(Error::File(message));
        }
        if view.dtype() != Dtype::F32 {
            return Err(Error::File(format!(
                "{file}: `{name}` is {:?}; only F32 checkpoints can be used",
                view.dtype()
            )));
        }
        let numbers = view
            .data()
            .as_chunks::<4>()
            .0
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes));
        arena[parameters.range(number)]
            .iter_mut()
            .zip(numbers)
            .for_each(|(to, from)| *to = from);
    }
    if let Some(extra) = unknown(parameters, parsed, prefix) {
        let hint = other_mechanism(parameters, parsed, prefix);
        return Err(Error::File(format!(
            "{file} has `{extra}`, which this model has not{hint}"
        )));
    }
    Ok(arena)
}

/// A tensor that the model does not know.
fn unknown(parameters: &Parameters, parsed: &SafeTensors<'_>, prefix: &str) -> Option<String> {
    let mut names: Vec<&str> = parsed
        .names()
        .into_iter()
        .filter(|name| name.starts_with(prefix))
        .collect();
    names.sort_unstable();
    names
        .into_iter()
        .find(|name| parameters.position(&name[prefix.len()..]).is_none())
        .map(str::to_owned)
}

/// What to say when the names are those of another residual mechanism.
fn other_mechanism(parameters: &Parameters, parsed: &SafeTensors<'_>, prefix: &str) -> String {
    let mechanism = |name: &str| {
        let marks = [
            ("dar.", "dar"),
            ("mhc2.", "mhc2_matched"),
            ("mhc.", "mhc"),
            ("hc.", "hyper_connections"),
        ];
        let more = [
            ("res_value", "sep_v"),
            ("res_", "attn_res, delta or cumulative"),
            ("dwa.", "dense_former"),
        ];
        let all = marks
            .into_iter()
            .chain(more)
            .chain([("depth_logits", "transparent")]);
        let own = name
            .rsplit("attn_")
            .next()
            .filter(|_| name.contains("attn_"))
            .or_else(|| name.rsplit("mlp_").next());
        let own = own.unwrap_or(name);
        all.into_iter()
            .find(|(mark, _)| own.contains(mark))
            .map(|(_, kind)| kind)
    };
    let mut names = parsed.names();
    names.sort_unstable();
    let theirs = names
        .into_iter()
        .find_map(|name| mechanism(name.strip_prefix(prefix)?))
        .unwrap_or("standard");
    let ours = parameters
        .specs()
        .iter()
        .find_map(|spec| mechanism(&spec.name))
        .unwrap_or("standard");
    if theirs == ours {
        return "; it belongs to a model of another size".into();
    }
    format!("; it is a checkpoint of mechanism {theirs}, this model has {ours}")
}

/// Read a checkpoint's tensors.
///
/// # Errors
/// If a file is damaged, or belongs to another model: the message names the first tensor that does not fit.
pub fn read(parameters: &Parameters, model: &[u8], optimizer: Option<&[u8]>) -> Result<Tensors> {
    let values = arena(
        parameters,
        &parse(model, "model.safetensors")?,
        "model.safetensors",
        "",
    )?;
    let moments = match optimizer {
        Some(bytes) => {
            let (parsed, file) = (
                parse(bytes, "optimizer.safetensors")?,
                "optimizer.safetensors",
            );
            Some((
                arena(parameters, &parsed, file, "m.")?,
                arena(parameters, &parsed, file, "v.")?,
            ))
        }
        None => None,
    };
    Ok(Tensors { values, moments })
}

/// Read `state.json`.
///
/// # Errors
/// If it is damaged or newer than this program.
pub fn read_state(text: &str) -> Result<State> {
    let state: State = serde_json::from_str(text).map_err(|error| {
        Error::File(format!(
            "state.json cannot be used ({error}); use another checkpoint of the run"
        ))
    })?;
    if state.schema != SCHEMA {
        return Err(Error::File(format!(
            "state.json has version {}, this program knows {SCHEMA}",
            state.schema
        )));
    }
    Ok(state)
}
