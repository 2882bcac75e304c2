//! What a person has changed, as settings, text and link.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use toml::{Table, Value};

use super::{Field, Initial};
use crate::config::RunConfig;

/// The sections whose `kind` decides which other keys there are.
const KIND_KEYS: [&str; 2] = ["residual.kind", "feed_forward.kind"];

/// The values that differ from the defaults, by key. The residual mechanism is always named, so that its other keys have
/// the defaults of the mechanism.
#[derive(Clone, Debug, PartialEq)]
pub struct Edits {
    values: BTreeMap<String, Value>,
}

impl Default for Edits {
    /// The mechanism of an empty file, in its plain form.
    fn default() -> Self {
        let kind = Value::String("dar".into());
        Self {
            values: BTreeMap::from([("residual.kind".into(), kind)]),
        }
    }
}

impl Edits {
    /// The edits that make this configuration: what has its default anyway is left out.
    ///
    /// # Errors
    /// A sentence, if the text is not TOML or not made of sections. Whether values are possible is not looked at.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            format!("This is not TOML: {}", error.message().trim_end())
        })?;
        let mut values = BTreeMap::new();
        for (section, inner) in table {
            let Value::Table(inner) = inner else {
                return Err(format!("`{section}` must be a section, [{section}]."));
            };
            flatten(&section, inner, &mut values);
        }
        let mut edits = Self { values };
        if !edits.values.contains_key("residual.kind") {
            // An empty file means blocks of two layers.
            let default = RunConfig::default().residual;
            let whole = toml::Table::try_from(&default).unwrap_or_default();
            for (key, value) in whole {
                edits
                    .values
                    .entry(format!("residual.{key}"))
                    .or_insert(value);
            }
        }
        edits.shorten();
        Ok(edits)
    }

    /// Leave out every value that the configuration has without it.
    fn shorten(&mut self) {
        let whole = RunConfig::parse(&self.to_toml(), &[]).ok();
        for key in self.values.keys().cloned().collect::<Vec<_>>() {
            if key == "residual.kind" {
                continue;
            }
            let Some(value) = self.values.remove(&key) else {
                continue;
            };
            let needless = match &whole {
                Some(whole) => {
                    RunConfig::parse(&self.to_toml(), &[]).is_ok_and(|short| short == *whole)
                }
                None => self.initial(&key).is_some_and(|default| default == value),
            };
            if !needless {
                self.values.insert(key, value);
            }
        }
    }

    /// What differs from the defaults, as a configuration file.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut table = Table::new();
        for (key, value) in &self.values {
            insert(&mut table, key, value.clone());
        }
        toml::to_string(&table).unwrap_or_default()
    }

    /// The mechanism.
    #[must_use]
    pub fn residual(&self) -> &str {
        self.word("residual.kind").unwrap_or("dar")
    }

    /// The kind of feed-forward sublayers.
    #[must_use]
    pub fn feed_forward(&self) -> &str {
        self.word("feed_forward.kind").unwrap_or("swiglu")
    }

    /// A text value that was set.
    #[must_use]
    pub fn word(&self, key: &str) -> Option<&str> {
        self.values.get(key).and_then(Value::as_str)
    }

    /// The field of a key, for the kinds that are chosen.
    #[must_use]
    pub fn field(&self, key: &str) -> Option<Field> {
        let kind = if key.starts_with("residual.") {
            self.residual()
        } else {
            self.feed_forward()
        };
        Field::of(key, kind)
    }

    /// What was set.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    /// The default of a key, if it is a value of its own.
    #[must_use]
    pub fn initial(&self, key: &str) -> Option<Value> {
        match self.field(key)?.default {
            Initial::Is(text) | Initial::Needed(text) => parsed(text),
            Initial::Follows(_) => None,
        }
    }

    /// What was set, or the default, if it does not follow from other fields.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<Value> {
        self.get(key).cloned().or_else(|| self.initial(key))
    }

    /// Whether a value differs from its default.
    #[must_use]
    pub fn changed(&self, key: &str) -> bool {
        self.values
            .get(key)
            .is_some_and(|value| self.initial(key).as_ref() != Some(value))
    }

    /// Set a value. Another kind takes its section's other keys with it, as in a file; a task and a text exclude each other.
    pub fn set(&mut self, key: &str, value: Value) {
        if KIND_KEYS.contains(&key) {
            if self.value(key).as_ref() == Some(&value) {
                return;
            }
            let section = key.trim_end_matches("kind");
            self.values.retain(|other, _| !other.starts_with(section));
            self.values.insert(key.into(), value);
            for field in Field::all(self.residual(), self.feed_forward()) {
                if let Initial::Needed(text) = field.default
                    && field.key.starts_with(section)
                    && let Some(value) = parsed(text)
                {
                    self.values.insert(field.key.into(), value);
                }
            }
            return;
        }
        if key == "data.task" {
            for other in ["file", "tokenizer", "tokenizer_file", "vocab"] {
                self.values.remove(&format!("data.{other}"));
            }
        }
        if key == "data.file" {
            self.values.remove("data.task");
        }
        let needed = |field: Field| matches!(field.default, Initial::Needed(_));
        if self.initial(key).as_ref() == Some(&value) && !self.field(key).is_some_and(needed) {
            self.values.remove(key);
        } else {
            self.values.insert(key.into(), value);
        }
    }

    /// Back to the default.
    pub fn reset(&mut self, key: &str) {
        match self.field(key).map(|field| field.default) {
            Some(Initial::Needed(text)) => {
                if let Some(value) = parsed(text) {
                    self.values.insert(key.into(), value);
                }
            }
            _ if KIND_KEYS.contains(&key) => {
                if let Some(value) = self.initial(key) {
                    self.set(key, value);
                }
            }
            _ => {
                self.values.remove(key);
            }
        }
    }

    /// Everything that differs from the defaults: key, value.
    pub fn changes(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values
            .iter()
            .map(|(key, value)| (key.as_str(), value))
            .filter(|(key, _)| self.changed(key))
    }

    /// A link that carries the configuration. `base` is the page, or `braid://`.
    #[must_use]
    pub fn link(&self, base: &str) -> String {
        let code = URL_SAFE_NO_PAD.encode(self.to_toml());
        format!("{base}#v={}&c={code}", env!("CARGO_PKG_VERSION"))
    }

    /// Whether a text is such a link.
    #[must_use]
    pub fn is_link(text: &str) -> bool {
        code_of(text).is_some()
    }

    /// The edits of a link; and the version that wrote it, if it is not this one.
    ///
    /// # Errors
    /// A sentence, if the text is not a link, or was cut.
    pub fn from_link(text: &str) -> Result<(Self, Option<String>), String> {
        let code = code_of(text)
            .ok_or("This is not a link of Braid: it has no `#c=` with a code after it.")?;
        let bytes = URL_SAFE_NO_PAD
            .decode(code)
            .map_err(|_| "The code of this link is damaged; was it cut?".to_owned())?;
        let toml = String::from_utf8(bytes)
            .map_err(|_| "The code of this link is damaged; was it cut?".to_owned())?;
        let version = parameter(text, "v").filter(|version| *version != env!("CARGO_PKG_VERSION"));
        Ok((Self::from_toml(&toml)?, version.map(str::to_owned)))
    }
}

/// The value of `name=` after the `#` of a link.
fn parameter<'a>(link: &'a str, name: &str) -> Option<&'a str> {
    let (_, after) = link.trim().split_once('#')?;
    let mut pairs = after.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

fn code_of(text: &str) -> Option<&str> {
    let text = text.trim();
    if text.lines().count() != 1 {
        return None;
    }
    parameter(text, "c").filter(|code| !code.is_empty())
}

fn parsed(text: &str) -> Option<Value> {
    let table = format!("value = {text}").parse::<Table>();
    table.ok()?.remove("value")
}

fn flatten(prefix: &str, table: Table, all: &mut BTreeMap<String, Value>) {
    for (key, value) in table {
        let key = format!("{prefix}.{key}");
        match value {
            Value::Table(inner) => flatten(&key, inner, all),
            value => {
                all.insert(key, value);
            }
        }
    }
}

fn insert(table: &mut Table, key: &str, value: Value) {
    let Some((head, rest)) = key.split_once('.') else {
        table.insert(key.into(), value);
        return;
    };
    let inner = table
        .entry(head)
        .or_insert_with(|| Value::Table(Table::new()));
    if let Value::Table(inner) = inner {
        insert(inner, rest, value);
    }
}

/// All values of a configuration file, key by key; none, if it is not TOML.
#[must_use]
pub fn values(toml: &str) -> Vec<(String, String)> {
    let mut all = BTreeMap::new();
    for (section, inner) in toml.parse::<Table>().unwrap_or_default() {
        if let Value::Table(inner) = inner {
            flatten(&section, inner, &mut all);
        }
    }
    let pairs = all.into_iter();
    pairs.map(|(key, value)| (key, value.to_string())).collect()
}

/// A key whose values differ between two configurations; `None`: one of them does not have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The key.
    pub key: String,
    /// Value of the first, TOML.
    pub left: Option<String>,
    /// Value of the second, TOML.
    pub right: Option<String>,
}

/// Whether two TOML texts are the same value: `1e-3` and `0.001` are.
#[must_use]
pub fn same_value(a: &str, b: &str) -> bool {
    a == b
        || match (parsed(a), parsed(b)) {
            (Some(Value::Integer(a)), Some(Value::Float(b)))
            | (Some(Value::Float(b)), Some(Value::Integer(a))) => a as f64 == b,
            (Some(a), Some(b)) => a == b,
            _ => false,
        }
}

/// What differs between two configurations, given key by key.
#[must_use]
pub fn difference(left: &[(String, String)], right: &[(String, String)]) -> Vec<Difference> {
    let find = |list: &[(String, String)], key: &str| {
        let mut pairs = list.iter().filter(|(other, _)| other == key);
        pairs.next().map(|(_, value)| value.clone())
    };
    let new = right.iter().filter(|(key, _)| find(left, key).is_none());
    let keys = left.iter().chain(new).map(|(key, _)| key.clone());
    keys.map(|key| Difference {
        left: find(left, &key),
        right: find(right, &key),
        key,
    })
    .filter(|entry| match (&entry.left, &entry.right) {
        (Some(left), Some(right)) => !same_value(left, right),
        _ => true,
    })
    .collect()
}
