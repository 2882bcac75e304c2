//! What the window keeps between starts: configurations under names, and how it looks. The host keeps it as one text.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::Table;

use super::host::Host;
use super::view::Beside;
use crate::form::Edits;

/// Dark, light, or as the system has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Look {
    /// As the system has it.
    #[default]
    System,
    /// Always dark.
    Dark,
    /// Always light.
    Light,
}

/// What the engine does beside the steps, as it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Aside {
    /// Seconds between two checkpoints by time; 0: never.
    autosave: f64,
    /// Share of the training time that goes into frames.
    frames: f64,
}

/// What is kept, TOML.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Shelf {
    look: Look,
    /// Whether nothing moves by itself; without it, as the system wishes.
    #[serde(skip_serializing_if = "Option::is_none")]
    calm: Option<bool>,
    /// Without it, as a new window has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<Aside>,
    /// Configurations by name: what differs from the defaults.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    presets: BTreeMap<String, Table>,
    /// What another version of Braid keeps here.
    #[serde(flatten)]
    others: BTreeMap<String, toml::Value>,
}

#[derive(Clone, Debug)]
enum Change {
    Look(Look),
    Calm(bool),
    Beside(Aside),
    /// A preset, or none: it is deleted.
    Preset(String, Option<Table>),
}

impl Shelf {
    fn take(&mut self, change: Change) {
        match change {
            Change::Look(look) => self.look = look,
            Change::Calm(calm) => self.calm = Some(calm),
            Change::Beside(beside) => self.beside = Some(beside),
            Change::Preset(name, Some(table)) => {
                self.presets.insert(name, table);
            }
            Change::Preset(name, None) => {
                self.presets.remove(&name);
            }
        }
    }

    fn read(host: &mut dyn Host) -> Result<Self, String> {
        let text = host.kept()?.unwrap_or_default();
        toml::from_str(&text).map_err(|error| {
            let what = error.message().trim_end();
            format!("What was kept cannot be read, and is left as it is: {what}.")
        })
    }
}

/// What is kept, and changes on the way to the host.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    shelf: Shelf,
    changes: Vec<Change>,
    read: bool,
    /// Why something is not kept: a sentence.
    failed: Option<String>,
    /// The system asks for as little motion as possible.
    system_calm: bool,
}

impl Kept {
    /// Read it once, and write what has changed.
    pub(super) fn exchange(&mut self, host: &mut dyn Host) {
        if !std::mem::replace(&mut self.read, true) {
            match Shelf::read(host) {
                Ok(shelf) => {
                    self.shelf = shelf;
                    let early = self.changes.iter().cloned();
                    early.for_each(|change| self.shelf.take(change));
                }
                Err(message) => self.failed = Some(message),
            }
        }
        self.system_calm = host.wants_calm();
        if self.changes.is_empty() {
            return;
        }
        // Another window may have kept something since.
        let written = Shelf::read(host).and_then(|mut shelf| {
            self.changes.iter().cloned().for_each(|c| shelf.take(c));
            let text = toml::to_string(&shelf).map_err(|error| error.to_string())?;
            host.keep(&text)?;
            Ok(shelf)
        });
        match written {
            Ok(shelf) => (self.shelf, self.failed) = (shelf, None),
            Err(message) => {
                self.failed = Some(format!("It is there until this window closes. {message}"));
            }
        }
        self.changes.clear();
    }

    fn change(&mut self, change: Change) {
        self.shelf.take(change.clone());
        self.changes.push(change);
    }

    /// Why something is not kept, if so: a sentence.
    #[must_use]
    pub fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Dark or light.
    #[must_use]
    pub fn look(&self) -> Look {
        self.shelf.look
    }

    /// Choose dark or light.
    pub fn set_look(&mut self, look: Look) {
        if look != self.shelf.look {
            self.change(Change::Look(look));
        }
    }

    /// Whether nothing is to move by itself: what was chosen, or else what the system asks for.
    #[must_use]
    pub fn calm(&self) -> bool {
        self.shelf.calm.unwrap_or(self.system_calm)
    }

    /// Choose it.
    pub fn set_calm(&mut self, calm: bool) {
        self.change(Change::Calm(calm));
    }

    /// How often checkpoints are written by time and how much time goes into frames, if it was ever chosen.
    #[must_use]
    pub fn beside(&self) -> Option<Beside> {
        let Aside { autosave, frames } = self.shelf.beside?;
        Some(Beside {
            autosave: Some(autosave).filter(|seconds| *seconds > 0.0),
            share: frames.clamp(0.0, 1.0),
        })
    }

    /// Choose it.
    pub fn set_beside(&mut self, beside: Beside) {
        self.change(Change::Beside(Aside {
            autosave: beside.autosave.unwrap_or(0.0),
            frames: beside.share,
        }));
    }

    /// Names of the presets, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.shelf.presets.keys().map(String::as_str)
    }

    /// The configuration of a preset.
    ///
    /// # Errors
    /// A sentence, if the preset was changed by hand and is no configuration any more.
    pub fn preset(&self, name: &str) -> Option<Result<Edits, String>> {
        let table = self.shelf.presets.get(name)?;
        let text = toml::to_string(table).map_err(|error| error.to_string());
        Some(text.and_then(|text| Edits::from_toml(&text)))
    }

    /// Keep a configuration under a name; what had the name is replaced.
    pub fn keep(&mut self, name: &str, edits: &Edits) {
        if let Ok(table) = edits.to_toml().parse() {
            self.change(Change::Preset(name.into(), Some(table)));
        }
    }

    /// Delete a preset.
    pub fn delete(&mut self, name: &str) {
        self.change(Change::Preset(name.into(), None));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::host::{Answer, Purpose, Wish};

    /// Keeps a text; `full`: refuses to.
    #[derive(Default)]
    struct Memory {
        text: Option<String>,
        full: bool,
    }

    impl Host for Memory {
        fn ask(&mut self, _: Purpose, _: Wish) {}

        fn poll(&mut self) -> Option<(Purpose, Answer)> {
            None
        }

        fn kept(&mut self) -> Result<Option<String>, String> {
            Ok(self.text.clone())
        }

        fn keep(&mut self, text: &str) -> Result<(), String> {
            if self.full {
                return Err("The disk is full.".into());
            }
            self.text = Some(text.into());
            Ok(())
        }
    }

    fn edits(seed: i64) -> Edits {
        let mut edits = Edits::default();
        edits.set("train.seed", seed.into());
        edits
    }

    #[test]
    fn a_preset_comes_back_in_the_next_start() {
        let mut host = Memory::default();
        let mut kept = Kept::default();
        kept.keep("mine, with \"marks\"", &edits(7));
        kept.set_calm(true);
        let beside = Beside {
            autosave: None,
            share: 0.1,
        };
        kept.set_beside(beside);
        kept.exchange(&mut host);
        let mut next = Kept::default();
        next.exchange(&mut host);
        assert!(next.calm());
        assert_eq!(next.beside(), Some(beside));
        assert_eq!(next.names().collect::<Vec<_>>(), ["mine, with \"marks\""]);
        let preset = next.preset("mine, with \"marks\"").expect("a preset");
        assert_eq!(preset, Ok(edits(7)));
        next.delete("mine, with \"marks\"");
        next.exchange(&mut host);
        let mut last = Kept::default();
        last.exchange(&mut host);
        assert_eq!(last.names().count(), 0);
    }

    #[test]
    fn two_windows_keep_the_presets_of_each_other() {
        let mut host = Memory::default();
        let (mut one, mut two) = (Kept::default(), Kept::default());
        one.exchange(&mut host);
        two.exchange(&mut host);
        one.keep("one", &edits(1));
        one.exchange(&mut host);
        two.keep("two", &edits(2));
        two.exchange(&mut host);
        assert_eq!(two.names().collect::<Vec<_>>(), ["one", "two"]);
    }

    #[test]
    fn what_cannot_be_read_is_left_alone_and_what_cannot_be_kept_is_said() {
        let mut host = Memory {
            text: Some("look = 3".into()),
            full: false,
        };
        let mut kept = Kept::default();
        kept.exchange(&mut host);
        assert!(
            kept.failed()
                .is_some_and(|text| text.contains("left as it is"))
        );
        kept.keep("mine", &edits(1));
        kept.exchange(&mut host);
        assert_eq!(host.text.as_deref(), Some("look = 3"));
        assert!(kept.failed().is_some());
        assert_eq!(
            kept.names().count(),
            1,
            "it is there until the window closes"
        );
        let mut host = Memory {
            text: Some("hue = 3\n".into()),
            full: true,
        };
        let mut kept = Kept::default();
        kept.keep("mine", &edits(1));
        kept.exchange(&mut host);
        assert!(
            kept.failed()
                .is_some_and(|text| text.contains("disk is full"))
        );
        host.full = false;
        kept.keep("more", &edits(2));
        kept.exchange(&mut host);
        assert_eq!(kept.failed(), None);
        let text = host.text.expect("kept");
        assert!(text.contains("hue = 3"), "of another version: {text}");
    }
}
