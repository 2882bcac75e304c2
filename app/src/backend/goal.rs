//! Conditions to pause at.

use super::loaded::Loaded;
use crate::protocol::Event;

/// Pause at whichever comes first; nothing: at the end of the schedule.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Goal {
    /// Updates in all.
    pub step: Option<u64>,
    /// Validation loss that is low enough.
    pub val_loss: Option<f64>,
    /// Seconds from when it was asked for.
    pub seconds: Option<f64>,
    /// The moment on the clock that they end at.
    pub until: Option<f64>,
}

impl Goal {
    /// What is in force, for a front end.
    pub(super) fn event(&self) -> Event {
        Event::Goal {
            step: self.step,
            val_loss: self.val_loss,
            seconds: self.seconds,
        }
    }

    /// Why to pause now, as a sentence.
    pub(super) fn reached(&self, loaded: &Loaded, now: f64) -> Option<String> {
        let step = loaded.step();
        if self.step.is_some_and(|goal| step >= goal) {
            return Some(format!("paused: step {step} is reached"));
        }
        if let (Some(goal), Some(loss)) = (self.val_loss, loaded.val_loss())
            && loss <= goal
        {
            return Some(format!(
                "paused at step {step}: the validation loss, {loss:.4}, is at most {goal}"
            ));
        }
        if self.until.is_some_and(|until| now >= until) {
            return Some(format!("paused at step {step}: the time is over"));
        }
        None
    }
}
