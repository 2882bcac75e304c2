//! The sweep file.
//!
//! ```toml
//! base = "small.toml"          # a configuration file; or [base.model], [base.train] .. here
//! seeds = 3                    # 1, 2 and 3; or a list
//! steps = 500
//! device = "cpu"
//! out = "sweeps/small"
//!
//! [[variant]]                  # the others are compared with the first
//! name = "standard"
//! residual.kind = "standard"
//!
//! [[variant]]
//! name = "delta"
//! residual = { kind = "delta", granularity = "block", sublayers_per_block = 4 }
//! ```
//!
//! Everything but `[[variant]]` may be left out. Paths are seen from where the program is started, as everywhere.

use std::path::{Path, PathBuf};

use braid_engine::{Error, Result};
use toml::{Table, Value};

use super::plan::{Sweep, Variant};
use super::seeds::Seeds;
use crate::config::RunConfig;
use crate::run_dir::read_text;
use crate::texts::name_files_fully;

/// Keys of the file.
const KEYS: [&str; 6] = ["base", "seeds", "steps", "device", "out", "variant"];

/// What a command line says instead of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Other seeds.
    pub seeds: Option<Seeds>,
    /// Other `train.steps`.
    pub steps: Option<u64>,
    /// Another device.
    pub device: Option<String>,
    /// Another folder.
    pub out: Option<PathBuf>,
}

/// `sweeps/NAME`
fn folder(name: &str) -> PathBuf {
    Path::new("sweeps").join(name)
}

fn table(path: &Path) -> Result<Table> {
    let text = read_text(path)?;
    text.parse().map_err(|error: toml::de::Error| {
        Error::File(format!(
            "{} is not TOML: {}",
            path.display(),
            error.to_string().trim_end()
        ))
    })
}

/// A configuration from layers of settings; what is wrong with it is said with the variant's name.
fn variant(name: &str, layers: Vec<Table>, settings: &[String]) -> Result<Variant> {
    let mut config = RunConfig::layered(layers, settings)
        .map_err(|error| Error::File(format!("variant {name}: {error}")))?;
    name_files_fully(&mut config);
    Ok(Variant {
        name: name.to_owned(),
        config,
    })
}

/// A layer that sets `train.steps`.
fn steps_layer(steps: Option<u64>) -> Vec<Table> {
    let Some(steps) = steps else {
        return Vec::new();
    };
    let steps = i64::try_from(steps).unwrap_or(i64::MAX);
    let train = Table::from_iter([("steps".to_owned(), Value::Integer(steps))]);
    vec![Table::from_iter([(
        "train".to_owned(),
        Value::Table(train),
    )])]
}

/// Seeds come from `seeds` alone.
fn refuse_seed(place: &str, layer: &Table) -> Result<()> {
    match layer.get("train").and_then(|train| train.get("seed")) {
        None => Ok(()),
        Some(_) => Err(Error::config(
            "train.seed",
            format!(
                "is given in {place}; a sweep trains every variant with the same seeds: write them into `seeds`"
            ),
        )),
    }
}

/// A text of the file.
fn text(table: &Table, key: &str) -> Result<Option<String>> {
    match table.get(key) {
        None => Ok(None),
        Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
        Some(other) => Err(Error::config(
            key,
            format!("is {other}; it must be a text in quotes"),
        )),
    }
}

/// Read a sweep file.
///
/// # Errors
/// If it is not TOML, has an unknown key, or a variant cannot be trained; the variant is named.
pub fn read(path: &Path, changes: Changes) -> Result<Sweep> {
    let file = table(path)?;
    if let Some(key) = file.keys().find(|key| !KEYS.contains(&key.as_str())) {
        let near = KEYS
            .into_iter()
            .min_by_key(|other| strsim::damerau_levenshtein(key, other))
            .filter(|other| strsim::damerau_levenshtein(key, other) <= 2)
            .map_or_else(
                || "; settings of all variants belong into [base]".to_owned(),
                |near| format!("; did you mean {near}?"),
            );
        return Err(Error::config(
            key,
            format!(
                "is no key of a sweep file; they are {}{near}",
                KEYS.join(", ")
            ),
        ));
    }
    let base = match file.get("base") {
        None => Table::new(),
        Some(Value::Table(table)) => table.clone(),
        Some(Value::String(path)) => table(Path::new(path))?,
        Some(other) => {
            return Err(Error::config(
                "base",
                format!(
                    "is {other}; it must be the path of a configuration, or a table of settings"
                ),
            ));
        }
    };
    // A configuration file may have a seed: it is a training's. One that was written for the sweep would be ignored.
    if matches!(file.get("base"), Some(Value::Table(_))) {
        refuse_seed("[base]", &base)?;
    }
    let steps = match (changes.steps, file.get("steps")) {
        (Some(steps), _) => Some(steps),
        (None, None) => None,
        (None, Some(value)) => match value.as_integer().and_then(|n| u64::try_from(n).ok()) {
            Some(steps) => Some(steps),
            None => {
                return Err(Error::config(
                    "steps",
                    format!("is {value}; it must be a whole number, 1 or more"),
                ));
            }
        },
    };
    let listed = match file.get("variant") {
        None => &Vec::new(),
        Some(Value::Array(list)) => list,
        Some(_) => {
            return Err(Error::config(
                "variant",
                "must be a list of tables; begin each with [[variant]], in two brackets",
            ));
        }
    };
    let mut variants = Vec::new();
    for (place, entry) in listed.iter().enumerate() {
        let Value::Table(entry) = entry else {
            return Err(Error::config(
                "variant",
                format!("has {entry}; each begins with [[variant]]"),
            ));
        };
        let Some(name) = text(entry, "name")? else {
            return Err(Error::config(
                "variant.name",
                format!("is missing from variant {}", place + 1),
            ));
        };
        let mut own = entry.clone();
        own.remove("name");
        refuse_seed(&format!("variant {name}"), &own)?;
        let mut layers = vec![base.clone()];
        layers.extend(steps_layer(steps));
        layers.push(own);
        variants.push(variant(&name, layers, &[])?);
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let seeds = match (changes.seeds, file.get("seeds")) {
        (Some(seeds), _) => seeds,
        (None, Some(value)) => Seeds::from_toml(value)?,
        (None, None) => Seeds::default(),
    };
    let device = match changes.device {
        Some(device) => device,
        None => text(&file, "device")?.unwrap_or_else(|| "auto".into()),
    };
    let out = match changes.out {
        Some(out) => out,
        None => text(&file, "out")?.map_or_else(|| folder(&stem), PathBuf::from),
    };
    Sweep::new(variants, seeds, device, out)
}

/// A sweep without a file: each of `wanted` is a configuration file, or a kind of residual mechanism, over `base`.
///
/// # Errors
/// As [`read`], and if something is neither.
pub fn compare(
    wanted: &[String],
    base: Option<&Path>,
    settings: &[String],
    changes: Changes,
) -> Result<Sweep> {
    if settings
        .iter()
        .any(|setting| setting.trim_start().starts_with("train.seed"))
    {
        return Err(Error::config(
            "train.seed",
            "is given by --set; a comparison trains everything with the same seeds: use --seeds",
        ));
    }
    let base = base.map(table).transpose()?.unwrap_or_default();
    let mut variants = Vec::new();
    for wanted in wanted {
        let path = Path::new(wanted);
        let (name, own) = if path.is_file() {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            (stem.into_owned(), table(path)?)
        } else if braid_engine::models::config::ResidualConfig::KINDS.contains(&wanted.as_str()) {
            let kind = Table::from_iter([("kind".to_owned(), Value::String(wanted.clone()))]);
            let layer = Table::from_iter([("residual".to_owned(), Value::Table(kind))]);
            (wanted.clone(), layer)
        } else {
            return Err(Error::File(format!(
                "`{wanted}` is neither a configuration file nor a residual mechanism; `braid list` shows the mechanisms"
            )));
        };
        let mut layers = vec![base.clone(), own];
        layers.extend(steps_layer(changes.steps));
        variants.push(variant(&name, layers, settings)?);
    }
    let names: Vec<&str> = variants
        .iter()
        .map(|variant| variant.name.as_str())
        .collect();
    let out = changes.out.unwrap_or_else(|| folder(&names.join("-")));
    let device = changes.device.unwrap_or_else(|| "auto".into());
    Sweep::new(variants, changes.seeds.unwrap_or_default(), device, out)
}
