//! The configuration as a form: what people see of each field, presets, and the way between edits, text and links.
//!
//! [`crate::config`] says what a field may hold. Here stands what a person wants to know of it: a label, a unit, the default,
//! the group it belongs to, whether it can change while training, and where it comes from.

mod edits;
mod presets;
mod table;

use crate::config::{FIELDS, FieldKind};

pub use edits::{Difference, Edits, difference, same_value, values};
pub use presets::{PRESETS, Preset};
pub use table::{FIELD_ROWS, KINDS, Kind, TASKS};

/// Where a field stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// The residual mechanism.
    Mechanism,
    /// Shape of the model, but the feed-forward sublayers.
    Size,
    /// The feed-forward sublayers.
    FeedForward,
    /// What is learnt.
    Data,
    /// How it is learnt.
    Optimiser,
    /// Learning rate over time, and how often something is looked at or kept.
    Schedule,
}

impl Group {
    /// All of them, in the order of the form.
    pub const ALL: [Self; 6] = [
        Self::Mechanism,
        Self::Data,
        Self::Size,
        Self::FeedForward,
        Self::Optimiser,
        Self::Schedule,
    ];

    /// Its heading.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Mechanism => "Mechanism",
            Self::Size => "Size",
            Self::FeedForward => "Feed-forward",
            Self::Data => "Data",
            Self::Optimiser => "Optimiser",
            Self::Schedule => "Schedule",
        }
    }
}

/// What a field holds when nobody says anything.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initial {
    /// This TOML value.
    Is(&'static str),
    /// It follows from other fields: how, in words.
    Follows(&'static str),
    /// There is none, and the field must be there: what a form puts in, TOML.
    Needed(&'static str),
}

/// Whether a field can be changed while a model trains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Live {
    /// It counts from the next update on.
    Safe,
    /// It needs a new run; why.
    Locked(&'static str),
}

/// A field, for people.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// `model.layers`
    pub key: &'static str,
    /// A word or two.
    pub label: &'static str,
    /// What the number counts; empty where it has none.
    pub unit: &'static str,
    /// Where it stands.
    pub group: Group,
    /// Whether it is folded away at first.
    pub advanced: bool,
    /// Whether it can be changed while training.
    pub live: Live,
    /// Without a choice.
    pub default: Initial,
    /// Type and range.
    pub kind: FieldKind,
    /// One line.
    pub help: &'static str,
    /// Where it comes from; empty where there is nothing to read.
    pub source: &'static str,
    /// The values of its section's `kind` that have it; empty: it does not depend on them.
    pub kinds: &'static [&'static str],
}

impl Field {
    /// The field of a key, for a section's kind; `None` for a key that has no row.
    #[must_use]
    pub fn of(key: &str, kind: &str) -> Option<Self> {
        let mut rows = FIELD_ROWS.iter().filter(|field| field.key == key);
        rows.find(|field| field.kinds.is_empty() || field.kinds.contains(&kind))
            .map(|field| Self {
                // The type and the line of help stand in `config`, once.
                kind: described(key).map_or(field.kind, |known| match field.kind {
                    FieldKind::Text => known.kind,
                    own => own,
                }),
                help: match field.help {
                    "" => described(key).map_or("", |known| known.help),
                    own => own,
                },
                ..*field
            })
    }

    /// All fields of a configuration with these kinds, in the order of the form.
    #[must_use]
    pub fn all(residual: &str, feed_forward: &str) -> Vec<Self> {
        let kind = |key: &str| match key.split('.').next() {
            Some("residual") => residual.to_owned(),
            _ => feed_forward.to_owned(),
        };
        let rows = FIELD_ROWS.iter();
        rows.filter(|field| field.kinds.is_empty() || field.kinds.contains(&&*kind(field.key)))
            .filter_map(|field| Self::of(field.key, &kind(field.key)))
            .collect()
    }

    /// The range in words: `1 to 256`, `more than 0`, `byte, char`
    #[must_use]
    pub fn range(&self) -> String {
        match self.kind {
            FieldKind::Int(low, high) if high >= 1_000_000_000 => format!("{low} or more"),
            FieldKind::Int(low, high) => format!("{low} to {high}"),
            FieldKind::Float {
                low,
                low_allowed,
                high,
                high_allowed,
            } => {
                let lower = if low_allowed {
                    format!("at least {}", plain(low))
                } else {
                    format!("more than {}", plain(low))
                };
                match (high < 1e6, high_allowed) {
                    (false, _) => lower,
                    (true, true) => format!("{lower}, at most {}", plain(high)),
                    (true, false) => format!("{lower}, less than {}", plain(high)),
                }
            }
            FieldKind::Bool => "on or off".into(),
            FieldKind::Text => "a text".into(),
            FieldKind::Choice(words) => words.join(", "),
        }
    }

    /// The default in words.
    #[must_use]
    pub fn default_words(&self) -> String {
        match self.default {
            Initial::Is(value) => value.trim_matches('"').into(),
            Initial::Follows(words) => words.into(),
            Initial::Needed(value) => format!("none; {value} to begin with"),
        }
    }
}

fn described(key: &str) -> Option<&'static crate::config::Field> {
    FIELDS.iter().find(|field| field.key == key)
}

/// A number with few digits: `0.001`, `1e-12`, `0.9999`
#[must_use]
pub fn plain(number: f64) -> String {
    let size = number.abs();
    if number == 0.0 || (1e-3..1e5).contains(&size) {
        format!("{number}")
    } else {
        format!("{number:e}")
    }
}
