//! Which frame is shown, and why there may be none.

use crate::protocol::{Frame, Site};
use crate::ui::heard::Heard;
use crate::ui::view::{Moment, View};

/// The frame of the chosen moment, and its place.
pub(in crate::ui) fn frame<'a>(heard: &'a Heard, view: &View) -> Option<(&'a Frame, usize)> {
    let frames = heard.frames();
    let last = frames.len().checked_sub(1)?;
    let at = match view.moment {
        Moment::Live => last,
        Moment::At(at) => at.min(last),
    };
    Some((&frames[at], at))
}

/// The frame whose step is nearest.
pub(in crate::ui) fn nearest(frames: &[Frame], step: u64) -> Option<usize> {
    let after = frames.partition_point(|frame| frame.step < step);
    let around = after.saturating_sub(1)..(after + 1).min(frames.len());
    around.min_by_key(|&at| frames[at].step.abs_diff(step))
}

/// What the map has to draw.
pub(super) enum Shown<'a> {
    /// Weights of a model.
    Frame(&'a Frame),
    /// Which site can read which source.
    Shape(&'a [Site]),
    /// Nothing: no run and no configuration that could be one.
    Nothing,
}

impl<'a> Shown<'a> {
    /// Of the loaded run, or the one that was closed until something else is set up; before its first frame, or without a
    /// run, the shape of what is set up.
    pub(super) fn of(heard: &'a Heard, view: &View) -> Self {
        let derived = heard.checked.as_ref().and_then(|c| c.derived.as_ref());
        match (frame(heard, view), derived) {
            (Some(_), Some(derived)) if view.draft.has_left(heard) => Self::Shape(&derived.shape),
            (Some((frame, _)), _) => Self::Frame(frame),
            (None, Some(derived)) => Self::Shape(&derived.shape),
            (None, None) => Self::Nothing,
        }
    }

    /// The sites.
    pub(super) fn sites(&self) -> &'a [Site] {
        match self {
            Self::Frame(frame) => &frame.sites,
            Self::Shape(sites) => sites,
            Self::Nothing => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_step_is_found() {
        let frames: Vec<Frame> = [5, 10, 20]
            .map(|step| Frame {
                step,
                ..Frame::default()
            })
            .to_vec();
        let at = [0, 7, 8, 14, 16, 99].map(|step| nearest(&frames, step));
        let expected = [0, 0, 1, 1, 2, 2].map(Some);
        assert_eq!(at, expected);
        assert_eq!(nearest(&[], 3), None);
    }
}
