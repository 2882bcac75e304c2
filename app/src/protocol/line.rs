//! The records of a run, as a front end reads them: from the running session, or from `metrics.jsonl`.

use serde::{Deserialize, Serialize};

use super::frame::Site;

/// One record; unknown events are skipped, unknown keys ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Line {
    /// One update.
    Train {
        /// Number of the update, from 1.
        step: u64,
        /// Mean cross-entropy of its batch before the update; nats. `None`: not finite.
        loss: Option<f64>,
        /// Learning rate.
        lr: Option<f64>,
        /// Norm of the gradient before clipping.
        grad_norm: Option<f64>,
        /// Tokens seen so far.
        #[serde(default)]
        tokens: u64,
        /// Tokens per second, lately.
        #[serde(default)]
        tokens_per_s: Option<f64>,
        /// Seconds since the process began to train, without pauses.
        #[serde(default)]
        seconds: Option<f64>,
    },
    /// A look at the validation part.
    Eval {
        /// Updates done.
        step: u64,
        /// Mean cross-entropy; nats.
        val_loss: Option<f64>,
        /// Share of right answers; tasks only.
        #[serde(default)]
        accuracy: Option<f64>,
    },
    /// Depth weights and gates.
    Routing {
        /// Updates done.
        step: u64,
        /// All sites that read something.
        sites: Vec<Site>,
    },
    /// A checkpoint was written.
    Saved {
        /// Updates done.
        step: u64,
        /// Its folder, seen from the run's folder.
        path: String,
    },
    /// A field was changed while the run went on.
    Changed {
        /// Updates done.
        step: u64,
        /// Key of the field.
        key: String,
        /// Its new value, TOML.
        value: String,
    },
    /// The training stopped.
    Error {
        /// The update that failed.
        step: u64,
        /// The first tensor that is not finite, if it was found.
        tensor: Option<String>,
        /// A sentence.
        message: String,
    },
    /// The end.
    Done {
        /// Updates done.
        step: u64,
        /// Last validation loss.
        val_loss: Option<f64>,
    },
    /// Something that this version does not draw.
    #[serde(other)]
    Other,
}

impl Line {
    /// All records of a `metrics.jsonl`; a torn last line and lines that are not records are skipped.
    #[must_use]
    pub fn read(text: &str) -> Vec<Self> {
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        lines.filter(|line| *line != Self::Other).collect()
    }
}
