//! What the person has chosen to look at: shared by all panels.

use super::host::Dialogs;

/// Which moment the routing view shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Moment {
    /// The newest frame, always.
    #[default]
    Live,
    /// A recorded frame, by its position in [`Frames`](super::heard::Frames).
    At(usize),
}

/// The horizontal axis of all curves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Axis {
    /// Updates.
    #[default]
    Step,
    /// Tokens seen.
    Tokens,
    /// Seconds of training.
    Time,
}

/// The right column's and the centre's tabs on narrow windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tab {
    /// The map.
    #[default]
    Routing,
    /// The configuration.
    Setup,
    /// Losses and rates.
    Curves,
    /// Texts.
    Samples,
    /// Several runs.
    Compare,
}

/// Shared choices.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Moment of the routing view.
    pub moment: Moment,
    /// Selected read: site and stream.
    pub selected: Option<(u32, usize)>,
    /// Selected source column of it.
    pub source: Option<usize>,
    /// Axis of the curves.
    pub axis: Axis,
    /// Where the pointer is in any chart, in units of the axis: read out in all of them.
    pub cursor: Option<f64>,
    /// Tab of narrow windows.
    pub tab: Tab,
    /// File dialogs: what panels ask for, and the answers.
    pub dialogs: Dialogs,
}
