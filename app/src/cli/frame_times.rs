//! Where the time of the window's frames goes while a model trains: `./x evidence frames`.

use std::time::{Duration, Instant};

/// Frames that come before the ones that count: the first ones lay out fonts and build pipelines.
const EARLY: usize = 30;

/// One frame.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    /// Since the frame before began: what a person sees.
    interval: Duration,
    /// The window's own code.
    window: Duration,
    /// All work of the frame on its thread: the window's code, egui's, tessellation, handing the drawing over; not waiting
    /// for the screen.
    work: Duration,
}

/// Frames of a window in which a model trains.
#[derive(Debug)]
pub(super) struct FrameTimes {
    wanted: usize,
    frames: Vec<Times>,
    /// When the frame before began, and how long the window's code took in it.
    before: Option<(Instant, Duration)>,
}

impl FrameTimes {
    pub(super) fn new(wanted: usize) -> Self {
        Self {
            wanted,
            frames: Vec::new(),
            before: None,
        }
    }

    /// A frame began at `began`, and its window's code took `window`; all work of the one before took `work`. Returns what
    /// to print once there are enough.
    pub(super) fn take(
        &mut self,
        began: Instant,
        window: Duration,
        work: Option<f32>,
    ) -> Option<String> {
        if let (Some((start, own)), Some(work)) = (self.before, work) {
            self.frames.push(Times {
                interval: began - start,
                window: own,
                work: Duration::from_secs_f32(work.max(0.0)),
            });
        }
        self.before = Some((began, window));
        (self.frames.len() >= self.wanted + EARLY).then(|| self.text())
    }

    fn text(&self) -> String {
        let counted = self.frames.get(EARLY..).unwrap_or_default();
        let line = |what: &str, of: fn(&Times) -> Duration| {
            let mut all: Vec<f64> = counted.iter().map(|t| of(t).as_secs_f64() * 1e3).collect();
            all.sort_by(f64::total_cmp);
            let at = |share: f64| {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a place in a list"
                )]
                let place = (share * all.len().saturating_sub(1) as f64).round() as usize;
                all.get(place).copied().unwrap_or(f64::NAN)
            };
            format!(
                "{what}: median {:.2} ms, 95th percentile {:.2} ms",
                at(0.5),
                at(0.95)
            )
        };
        [
            format!("{} frames of the window while it trains", counted.len()),
            line("  from frame to frame", |times| times.interval),
            line(
                "  work of a frame on its thread, without waiting for the screen",
                |times| times.work,
            ),
            line("    of it the window's own code", |times| times.window),
            line(
                "    of it the rest: egui, tessellation, handing the drawing over",
                |times| times.work.saturating_sub(times.window),
            ),
        ]
        .join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn early_frames_do_not_count_and_parts_belong_to_their_frame() {
        let began = Instant::now();
        let mut times = FrameTimes::new(3);
        let mut text = None;
        for frame in 0..=u32::try_from(EARLY).expect("small") + 3 {
            assert_eq!(text, None, "before frame {frame}");
            // Slow at first; then 20 ms from frame to frame, 5 ms of work, 4 ms of it the window's own.
            let early = (frame as usize) < EARLY;
            let own = Duration::from_millis(if early { 90 } else { 4 });
            // Work of the frame before.
            let work = (frame > 0).then_some(if frame as usize <= EARLY { 0.1 } else { 0.005 });
            text = times.take(began + 20 * frame * Duration::from_millis(1), own, work);
        }
        let text = text.expect("enough frames");
        for part in [
            "3 frames",
            "from frame to frame: median 20.00 ms",
            "for the screen: median 5.00 ms",
            "own code: median 4.00 ms",
            "handing the drawing over: median 1.00 ms",
        ] {
            assert!(text.contains(part), "`{part}` is not in:\n{text}");
        }
    }
}
