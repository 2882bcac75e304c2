//! When to take a routing frame, and where the time goes.

use crate::protocol::Timing;

/// A frame at least this often, in seconds, if frames are wanted at all.
const LONGEST: f64 = 10.0;

/// Weight of the newest measurement in running means.
const NEW: f64 = 0.1;

/// Running means, and the time since the last frame.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    timing: Timing,
    trained: f64,
    last_frame: Option<f64>,
    last_report: f64,
}

fn mean(old: f64, new: f64) -> f64 {
    if old == 0.0 {
        new
    } else {
        old + NEW * (new - old)
    }
}

impl Pace {
    /// One update took `seconds`, `device` of them waiting for the device or computing.
    pub(super) fn step(&mut self, seconds: f64, device: f64) {
        self.trained += seconds;
        self.timing.step = mean(self.timing.step, 1e3 * seconds);
        self.timing.device = mean(self.timing.device, 1e3 * device.min(seconds));
        self.timing.host = (self.timing.step - self.timing.device).max(0.0);
    }

    /// One frame took `seconds`.
    pub(super) fn frame(&mut self, now: f64, seconds: f64) {
        self.timing.frame = mean(self.timing.frame, 1e3 * seconds);
        (self.trained, self.last_frame) = (0.0, Some(now));
    }

    /// Whether the next frame's cost is at most `share` of what was trained since the last one.
    pub(super) fn frame_is_due(&self, now: f64, share: f64) -> bool {
        if share <= 0.0 {
            return false;
        }
        let Some(last) = self.last_frame else {
            return true;
        };
        self.trained * share >= 1e-3 * self.timing.frame || now - last > LONGEST
    }

    /// The means, a few times a second.
    pub(super) fn report(&mut self, now: f64) -> Option<Timing> {
        if now - self.last_report < 0.25 {
            return None;
        }
        self.last_report = now;
        Some(self.timing)
    }
}
