//! The configuration that is being edited, shared by the panels that show, check and start it.

use super::heard::Heard;
use crate::form::{Difference, Edits, PRESETS, difference};
use crate::protocol::{Command, Draft, Event, FieldError};

/// Seconds of rest before a changed configuration is looked at.
const REST: f64 = 0.15;

/// A draft and the question about it that is under way.
#[derive(Clone, Debug)]
pub struct Drafting {
    /// What differs from the defaults.
    pub edits: Edits,
    /// Name and content of a text that the engine's side cannot read itself.
    pub text: Option<(String, Vec<u8>)>,
    /// `auto`, `cpu`, `gpu` or a part of an adapter's name.
    pub device: String,
    /// A field to scroll to and open.
    pub go_to: Option<String>,
    number: u64,
    /// What the last question was about.
    asked: Option<(Edits, String)>,
    /// When the draft was seen to differ from it.
    since: Option<f64>,
    /// A run of this draft was asked for: what becomes ready is no news.
    starting: bool,
    /// Folder of the run that became ready last.
    folder: Option<String>,
}

impl Default for Drafting {
    /// The first preset.
    fn default() -> Self {
        let edits = PRESETS
            .first()
            .and_then(|preset| Edits::from_toml(preset.toml).ok());
        Self {
            edits: edits.unwrap_or_default(),
            text: None,
            device: "auto".into(),
            go_to: None,
            number: 0,
            asked: None,
            since: None,
            starting: false,
            folder: None,
        }
    }
}

impl Drafting {
    /// As the engine's side reads it.
    #[must_use]
    pub fn draft(&self) -> Draft {
        let name = self.edits.word("data.file");
        let text = self.text.as_ref();
        Draft {
            toml: self.edits.to_toml(),
            text: text.filter(|(own, _)| Some(own.as_str()) == name).cloned(),
        }
    }

    /// Look at the draft once it rests.
    pub fn tick(&mut self, ui: &egui::Ui, out: &mut Vec<Command>) {
        let state = (self.edits.clone(), self.device.clone());
        if self.asked.as_ref() == Some(&state) {
            self.since = None;
            return;
        }
        let now = ui.input(|input| input.time);
        let since = *self.since.get_or_insert(now);
        let first = self.asked.is_none();
        if !first && now - since < REST {
            ui.ctx()
                .request_repaint_after(std::time::Duration::from_secs_f64(REST));
            return;
        }
        self.number += 1;
        self.asked = Some(state);
        self.since = None;
        if self.missing().is_none() {
            out.push(Command::Check {
                number: self.number,
                draft: self.draft(),
                device: self.device.clone(),
            });
        }
    }

    /// The last question will not be answered: ask it again.
    pub(super) fn ask_again(&mut self) {
        (self.asked, self.starting) = (None, false);
    }

    /// Whether the last answer is about the draft as it is.
    #[must_use]
    pub fn is_answered(&self, heard: &Heard) -> bool {
        let current = self.asked.as_ref() == Some(&(self.edits.clone(), self.device.clone()));
        let answer = heard.checked.as_ref();
        current && answer.is_some_and(|checked| checked.number == self.number)
    }

    /// What is known to be missing without asking.
    fn missing(&self) -> Option<FieldError> {
        (self.edits.word("data.file") == Some("")).then(|| FieldError {
            field: Some("data.file".into()),
            message: "Choose a text to learn, or drop one on the window.".into(),
        })
    }

    /// Why the draft cannot run, as far as known.
    #[must_use]
    pub fn error(&self, heard: &Heard) -> Option<FieldError> {
        self.missing().or_else(|| {
            let checked = heard.checked.as_ref();
            let checked = checked.filter(|_| self.is_answered(heard));
            checked.and_then(|checked| checked.error.clone())
        })
    }

    /// What differs between the run that is loaded and the draft; empty while that is unknown.
    #[must_use]
    pub fn news(&self, heard: &Heard) -> Vec<Difference> {
        match (&heard.run, &heard.checked) {
            (Some(run), Some(checked)) if self.is_answered(heard) && !checked.values.is_empty() => {
                difference(&run.values, &checked.values)
            }
            _ => Vec::new(),
        }
    }

    /// Whether no run is loaded and the draft is not the configuration of the one that was closed.
    #[must_use]
    pub fn has_left(&self, heard: &Heard) -> bool {
        match (&heard.run, &heard.closed, &heard.checked) {
            _ if heard.looking => false,
            // The last answer, even if the draft has changed since: nothing flickers while somebody types.
            (None, Some(closed), Some(checked)) if !checked.values.is_empty() => {
                !difference(&closed.values, &checked.values).is_empty()
            }
            _ => false,
        }
    }

    /// Begin a run of the draft. One that is loaded is saved and closed first.
    pub fn start(&mut self, paused: bool, out: &mut Vec<Command>) {
        self.starting = true;
        out.push(Command::Start {
            draft: self.draft(),
            device: self.device.clone(),
            folder: None,
            paused,
        });
    }

    /// A run that was not begun from the draft brings its own configuration.
    pub fn hear(&mut self, event: &Event) {
        match event {
            Event::Ready(run) => {
                // A run that is read again, after a rewind or a lost device, leaves what was edited since.
                let again = self.folder.replace(run.folder.clone()) == Some(run.folder.clone());
                if !std::mem::take(&mut self.starting)
                    && !again
                    && let Ok(edits) = Edits::from_toml(&run.toml)
                {
                    self.edits = edits;
                }
            }
            Event::Failed { what, .. } if what == "start" => self.starting = false,
            _ => {}
        }
    }

    /// The effective value of a field, TOML: what was set, its default, or what the engine's side worked out.
    #[must_use]
    pub fn effective(&self, key: &str, heard: &Heard) -> Option<toml::Value> {
        self.edits.value(key).or_else(|| {
            let values = &heard.checked.as_ref()?.values;
            let (_, text) = values.iter().find(|(own, _)| own == key)?;
            let table: toml::Table = format!("value = {text}").parse().ok()?;
            table.get("value").cloned()
        })
    }
}
