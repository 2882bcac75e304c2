//! A configuration as settings of a command line, and where two of them differ.

use toml::{Table, Value};

use super::layers::leaves;
use super::{RunConfig, is_kind};

/// All keys and their values, in the order of their names.
fn all(config: &RunConfig) -> Vec<(String, Value)> {
    let table: Table = config
        .to_toml()
        .parse()
        .expect("what `to_toml` writes is TOML");
    leaves(&table).expect("its sections are those of a configuration")
}

fn of<'a>(all: &'a [(String, Value)], key: &str) -> Option<&'a Value> {
    let mut found = all.iter().filter(|(other, _)| other == key);
    found.next().map(|(_, value)| value)
}

fn shown(all: &[(String, Value)], key: &str) -> String {
    of(all, key).map_or_else(|| "absent".into(), Value::to_string)
}

/// A value as `--set` takes it. Plain words need no quotes there.
fn setting(key: &str, value: &Value) -> String {
    if let Value::String(text) = value {
        let plain = text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c));
        let word = plain && text.starts_with(|c: char| c.is_ascii_lowercase());
        if word && !["true", "false", "inf", "nan"].contains(&text.as_str()) {
            return format!("{key}={text}");
        }
    }
    format!("{key}={value}")
}

impl RunConfig {
    /// Settings that make this configuration of the empty file: `RunConfig::parse("", &settings)` is it again. What is as in
    /// the empty file is left out.
    #[must_use]
    pub fn settings(&self) -> Vec<String> {
        let (own, plain) = (all(self), all(&Self::default()));
        // A kind takes the other keys of its section with it.
        let reset = |key: &str| {
            let section = key.split('.').next().unwrap_or_default();
            let kind = format!("{section}.kind");
            is_kind(&kind) && of(&own, &kind) != of(&plain, &kind)
        };
        let text = |pairs: &[(String, Value)]| -> Vec<String> {
            let settings = pairs.iter().map(|(key, value)| setting(key, value));
            settings.collect()
        };
        let mut changed = own.clone();
        changed.retain(|(key, value)| reset(key) || of(&plain, key) != Some(value));
        let short = text(&changed);
        // A field that is as in the empty file may follow from another one that is not: then it has to be said.
        match Self::parse("", &short) {
            Ok(same) if same == *self => short,
            _ => text(&own),
        }
    }

    /// The first key whose value is not that of `other`, with both values as TOML; keys that `except` names do not count.
    #[must_use]
    pub fn difference(&self, other: &Self, except: &[&str]) -> Option<(String, String, String)> {
        let (own, theirs) = (all(self), all(other));
        // Other keys follow from a kind, so it is named first.
        let kinds = ["residual.kind", "feed_forward.kind"];
        let rest = own.iter().chain(&theirs).map(|(key, _)| key.as_str());
        let mut counted = kinds
            .into_iter()
            .chain(rest)
            .filter(|key| !except.contains(key));
        let key = counted.find(|key| shown(&own, key) != shown(&theirs, key))?;
        Some((key.to_owned(), shown(&own, key), shown(&theirs, key)))
    }

    /// The value of a key as TOML, or `absent`.
    #[must_use]
    pub fn value(&self, key: &str) -> String {
        shown(&all(self), key)
    }
}
