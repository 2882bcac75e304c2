//! Records of a run: one JSON object a line, in `metrics.jsonl` and on the standard output of `--json`.
//!
//! A value that does not exist, or is not finite, is `null`. `seconds` and `tokens_per_s` are the only fields that differ
//! between two runs with the same bits.

use braid_engine::analysis::{ExpertLoad, SiteStats};
use serde::Serialize;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Record {
    /// One update.
    Train {
        /// Number of the update, from 1.
        step: u64,
        /// Mean cross-entropy of its batch before the update; nats.
        loss: f64,
        /// What was minimised: the loss and what follows here. Experts only, as these.
        #[serde(skip_serializing_if = "Option::is_none")]
        objective: Option<f64>,
        /// Losses for an even use of experts, over all layers, coefficient included.
        #[serde(skip_serializing_if = "Option::is_none")]
        balance: Option<f64>,
        /// Losses for small logits of the routers, over all layers, coefficient included.
        #[serde(skip_serializing_if = "Option::is_none")]
        z: Option<f64>,
        /// Learning rate.
        lr: f64,
        /// Norm of the gradient before clipping.
        grad_norm: f64,
        /// Tokens seen so far.
        tokens: u64,
        /// Tokens per second, lately.
        tokens_per_s: f64,
        /// Seconds since this process began to train, without pauses. Several updates are read back together: they are spread
        /// evenly over the time since the read-back, validation or checkpoint before.
        seconds: f64,
    },
    /// A look at the validation part.
    Eval {
        /// Updates done.
        step: u64,
        /// Mean cross-entropy; nats.
        val_loss: f64,
        /// Tokens that it is a mean over.
        val_tokens: u64,
        /// The loss as bits per byte of text; files only.
        #[serde(skip_serializing_if = "Option::is_none")]
        bits_per_byte: Option<f64>,
        /// Share of right answers; tasks only.
        #[serde(skip_serializing_if = "Option::is_none")]
        accuracy: Option<f64>,
    },
    /// Depth weights and gates, means over the tokens of a fixed validation batch.
    Routing {
        /// Updates done.
        step: u64,
        /// All sites that read something.
        sites: Vec<SiteStats>,
    },
    /// The use of experts on a fixed validation batch.
    Experts {
        /// Updates done.
        step: u64,
        /// All layers with experts.
        layers: Vec<ExpertLoad>,
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
        /// `non_finite`
        code: &'static str,
        /// The first tensor that is not finite, if it was found.
        tensor: Option<String>,
        /// A sentence.
        message: String,
    },
    /// The end.
    Done {
        /// Updates done.
        step: u64,
        /// Loss of the last update.
        loss: Option<f64>,
        /// Last validation loss.
        val_loss: Option<f64>,
        /// The run's folder.
        run: String,
    },
}

impl Record {
    /// Number of the update that the record belongs to.
    #[must_use]
    pub fn step(&self) -> u64 {
        match self {
            Self::Train { step, .. }
            | Self::Eval { step, .. }
            | Self::Routing { step, .. }
            | Self::Experts { step, .. }
            | Self::Saved { step, .. }
            | Self::Changed { step, .. }
            | Self::Error { step, .. }
            | Self::Done { step, .. } => *step,
        }
    }

    /// The line, without its end.
    #[must_use]
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("numbers, texts and lists of them are JSON")
    }
}

/// The lines of a `metrics.jsonl` that a checkpoint of `step` updates contains: whole lines of events up to there. The end
/// of the run and its errors are left out, because the run goes on.
#[must_use]
pub fn lines_until(text: &str, step: u64) -> String {
    let keep = |line: &&str| {
        let Ok(value) = serde_json::from_str::<serde_json::Value>(line) else {
            return false;
        };
        let ended = matches!(value["event"].as_str(), None | Some("done" | "error"));
        !ended && value["step"].as_u64().is_some_and(|at| at <= step)
    };
    // The last line counts only with its end: without it, it may be cut short and still be JSON.
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    let mut kept = String::new();
    for line in whole.lines().filter(keep) {
        kept.push_str(line);
        kept.push('\n');
    }
    kept
}
