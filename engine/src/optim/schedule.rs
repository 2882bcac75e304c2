//! The learning rate as a function of the step.
//!
//! All kinds begin with a linear warm-up. The sources leave the rest open, so these are our choices:
//! * the first step of a warm-up of `W` steps already has the rate `lr / W`, and step `W - 1` is the first with `lr`;
//! * a decay ends exactly at `min_lr` in the last step, and stays there if training goes on;
//! * `wsd` (warm-up, stable, decay) falls in the last fifth of all steps, in a straight line.

use serde::{Deserialize, Serialize};

/// Shape of the curve after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleKind {
    /// Half a cosine wave from `lr` down to `min_lr`.
    #[default]
    Cosine,
    /// `lr`, then a line down to `min_lr` in the last fifth of the steps.
    Wsd,
    /// `lr`.
    Constant,
}

/// A learning-rate schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// Shape of the curve after the warm-up.
    pub kind: ScheduleKind,
    /// Largest rate.
    pub lr: f64,
    /// Rate at the end of a decay.
    pub min_lr: f64,
    /// Steps of the warm-up.
    pub warmup: u64,
    /// Steps of the whole training: where the decay ends.
    pub steps: u64,
}

impl Schedule {
    /// The rate of a step; `step` counts from 0.
    #[must_use]
    pub fn rate(&self, step: u64) -> f64 {
        if step < self.warmup {
            return self.lr * (step + 1) as f64 / self.warmup as f64;
        }
        let last = self.steps.saturating_sub(1);
        // The last step with the full rate.
        let peak = self.warmup.saturating_sub(1);
        match self.kind {
            ScheduleKind::Constant => self.lr,
            ScheduleKind::Cosine => {
                let way = progress(step, peak, last);
                self.min_lr
                    + (self.lr - self.min_lr) * 0.5 * (1.0 + (std::f64::consts::PI * way).cos())
            }
            ScheduleKind::Wsd => {
                let start = last.saturating_sub((self.steps / 5).max(1)).max(peak);
                self.lr + (self.min_lr - self.lr) * progress(step, start, last)
            }
        }
    }
}

/// How far `step` is on the way from `start` to `last`: 0 to 1.
fn progress(step: u64, start: u64, last: u64) -> f64 {
    if step >= last {
        return 1.0;
    }
    step.saturating_sub(start) as f64 / (last - start) as f64
}
