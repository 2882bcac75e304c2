//! Where a converted run comes from: `origin.json` in its folder, and the first lines of its `config.toml`.

use std::path::Path;

use braid_engine::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::run_dir::{read_text, write_file};

const FILE: &str = "origin.json";

/// What a run was made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// The checkpoint's folder.
    pub checkpoint: String,
    /// Updates that it had seen.
    pub step: u64,
    /// Its mechanism.
    pub from: String,
    /// The mechanism it was converted to.
    pub to: String,
    /// Parameters that were added.
    pub added: usize,
    /// Held-out loss of the checkpoint; nats.
    pub before: f64,
    /// The same after the conversion.
    pub after: f64,
    /// Tokens that both are means over.
    pub val_tokens: u64,
}

impl Origin {
    /// One line: `converted from runs/a/checkpoints/step-000200 (standard, step 200)`
    #[must_use]
    pub fn words(&self) -> String {
        format!(
            "converted from {} ({}, step {})",
            self.checkpoint, self.from, self.step
        )
    }

    /// A configuration with the origin said in front, as TOML comments.
    #[must_use]
    pub fn above(&self, config_toml: &str) -> String {
        // A path may hold a line end; a comment must not.
        let words = self.words().replace(['\n', '\r'], " ");
        format!(
            "# {words}\n# held-out loss {:.6} before, {:.6} after, over {} tokens\n{config_toml}",
            self.before, self.after, self.val_tokens
        )
    }

    /// Write it into a run's folder.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, run: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).expect("texts and numbers are JSON");
        write_file(run, FILE, (text + "\n").as_bytes())
    }

    /// Read it from a run's folder; `None` for a run that was not converted.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn read(run: &Path) -> Result<Option<Self>> {
        let path = run.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let origin = serde_json::from_str(&read_text(&path)?);
        origin
            .map(Some)
            .map_err(|error| Error::File(format!("{} cannot be used: {error}", path.display())))
    }
}
