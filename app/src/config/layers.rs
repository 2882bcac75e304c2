//! From tables of settings to sections: layers laid over one another, unknown keys, types, ranges, derived fields.

use braid_engine::models::config::{FeedForwardConfig, ResidualConfig};
use braid_engine::{Error, Result};
use serde_json::json;
use toml::{Table, Value};

use super::fields::{FIELDS, FieldKind};
use super::{DEFAULT_TASK, DEFAULT_VOCAB, DataSection};

pub(super) fn is_kind(key: &str) -> bool {
    key == "residual.kind" || key == "feed_forward.kind"
}

/// `a.b=v`, `v` as in TOML; a word that is not TOML is a text, so that shells need fewer quotes.
pub(super) fn parse_setting(setting: &str) -> Result<(String, Value)> {
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
    if value.is_empty() || value.contains('\n') || SECTIONS.contains(&key) {
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
pub(super) fn leaves(table: &Table) -> Result<Vec<(String, Value)>> {
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
            let first = value.as_table().and_then(|inner| inner.keys().next());
            return Err(unknown(
                &first.map_or_else(|| name.clone(), |key| format!("{name}.{key}")),
            ));
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
pub(super) fn set(table: &mut Table, key: &str, value: Value) {
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
pub(super) fn overlay(base: &mut Table, layer: Table) -> Result<()> {
    for name in ["residual", "feed_forward"] {
        if layer
            .get(name)
            .is_some_and(|section| section.get("kind").is_some())
        {
            base.insert(name.into(), Value::Table(Table::new()));
        }
    }
    if let Some(Value::Table(data)) = layer.get("data") {
        let (task, file) = (data.contains_key("task"), data.contains_key("file"));
        if task && file {
            return Err(Error::config(
                "data.file",
                "and data.task are both given; use one of them",
            ));
        }
        if let Some(Value::Table(old)) = base.get_mut("data") {
            if task {
                old.remove("file");
                for key in ["tokenizer", "vocab", "tokenizer_file"] {
                    old.remove(key);
                }
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
        known.extend(
            keys_of("residual", kind)
                .into_iter()
                .map(|key| format!("residual.{key}")),
        );
    }
    for kind in FeedForwardConfig::KINDS {
        known.extend(
            keys_of("feed_forward", kind)
                .into_iter()
                .map(|key| format!("feed_forward.{key}")),
        );
    }
    if !key.contains('.') {
        known.extend(SECTIONS.map(String::from));
    }
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    // A right key in the wrong section is nearer than a like key in the right one.
    let distance = |other: &str| {
        let whole = strsim::damerau_levenshtein(key, other);
        if last(key) == last(other) {
            whole.min(1)
        } else {
            whole
        }
    };
    let nearest = known.iter().min_by_key(|other| distance(other));
    let hint = match nearest {
        Some(nearest) if distance(nearest) <= 3 + key.len() / 2 => {
            format!("; did you mean {nearest}?")
        }
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
pub(super) fn check(key: &str, value: &Value) -> Result<()> {
    if key.starts_with("residual.") || key.starts_with("feed_forward.") {
        return Ok(());
    }
    let Some(field) = FIELDS.iter().find(|field| field.key == key) else {
        return Err(unknown(key));
    };
    let refuse = |wanted: String| {
        Err(Error::config(
            key,
            format!("is {}; it must be {wanted}", shown(value)),
        ))
    };
    match field.kind {
        FieldKind::Bool if !value.is_bool() => refuse("true or false".into()),
        FieldKind::Text if value.as_str().is_none_or(str::is_empty) => refuse("a text".into()),
        FieldKind::Choice(words) if !value.as_str().is_some_and(|word| words.contains(&word)) => {
            refuse(format!("one of {}", words.join(", ")))
        }
        FieldKind::Int(low, high)
            if !value
                .as_integer()
                .is_some_and(|n| (low..=high).contains(&n)) =>
        {
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
            let lower = if low_allowed {
                format!("at least {low}")
            } else {
                format!("more than {low}")
            };
            let upper = if high_allowed {
                format!("at most {high}")
            } else {
                format!("less than {high}")
            };
            refuse(format!("a number, {lower} and {upper}"))
        }
        _ => Ok(()),
    }
}

/// Fields of `[model]` that follow from others.
pub(super) fn derive_model(model: &mut Value) -> Result<()> {
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
            let message =
                format!("is {heads}; it must divide model.width, {width}, or set model.head_dim");
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
        // 64 ceil(8 width / 3 / 64)
        let ffn = 64 * ((8 * width + 3 * 64 - 1) / (3 * 64));
        model.insert("ffn".into(), Value::Integer(ffn));
    }
    Ok(())
}

/// Fields of `[train]` that follow from others.
pub(super) fn derive_train(train: &mut Value) {
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

pub(super) fn data_section(data: Value) -> Result<DataSection> {
    let mut data: DataSection = read("data", data)?;
    match (&data.task, &data.file) {
        (None, Some(_)) => {
            data.tokenizer.get_or_insert_with(|| "byte".into());
        }
        (None, None) => data.task = Some(DEFAULT_TASK.into()),
        _ => {}
    }
    if let (Some(task), Some(tokenizer)) = (&data.task, &data.tokenizer) {
        let message = format!(
            "is \"{tokenizer}\", but the task {task} has tokens of its own; it is for files"
        );
        return Err(Error::config("data.tokenizer", message));
    }
    let bpe = data.tokenizer.as_deref() == Some("bpe");
    let given = [
        ("data.vocab", data.vocab.is_some()),
        ("data.tokenizer_file", data.tokenizer_file.is_some()),
    ];
    if let Some((key, _)) = given.iter().find(|(_, given)| *given && !bpe) {
        let message = "is for data.tokenizer = \"bpe\" only; set that, or leave it out";
        return Err(Error::config(*key, message));
    }
    if given.iter().all(|(_, given)| *given) {
        let message = "is the size of a vocabulary that is learnt, but data.tokenizer_file names one; leave one of them out";
        return Err(Error::config("data.vocab", message));
    }
    if bpe && data.tokenizer_file.is_none() {
        data.vocab.get_or_insert(DEFAULT_VOCAB);
    }
    Ok(data)
}

/// A section whose values have been checked.
pub(super) fn read<T: serde::de::DeserializeOwned>(section: &str, value: Value) -> Result<T> {
    value
        .try_into()
        .map_err(|error: toml::de::Error| Error::config(section, error.message().to_owned()))
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
pub(super) fn mechanism<T: serde::de::DeserializeOwned>(section: &str, value: &Value) -> Result<T> {
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
            let near = kinds
                .iter()
                .min_by_key(|other| strsim::damerau_levenshtein(kind, other))?;
            (strsim::damerau_levenshtein(kind, near) <= 3)
                .then(|| format!("; did you mean {near}?"))
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
            let near = others
                .iter()
                .min_by_key(|other| strsim::damerau_levenshtein(key, other));
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
            return Err(Error::config(
                field(key),
                format!("{kind} has no such setting{hint}"),
            ));
        }
        // One key at a time, so that the engine's complaint can be given a name.
        let mut one = with_required(section, kind);
        one[key] = serde_json::to_value(value).unwrap_or_default();
        if let Err(error) = serde_json::from_value::<T>(one) {
            return Err(Error::config(
                field(key),
                format!("is {}: {error}", shown(value)),
            ));
        }
    }
    let value = serde_json::to_value(table).unwrap_or_default();
    serde_json::from_value(value).map_err(|error| Error::config(section, error.to_string()))
}
