//! What the person has chosen to look at: shared by all panels.

use super::drafting::Drafting;
use super::host::Dialogs;
use super::kept::Kept;
use crate::protocol::{AUTOSAVE, Command, Intervention, SHARE};

/// Which moment the routing view shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Moment {
    /// The newest frame, always.
    #[default]
    Live,
    /// A recorded frame, by its position in the list of recorded frames.
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

/// How all curves are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scales {
    /// Equal distances on the horizontal axis are equal ratios.
    pub log_x: bool,
    /// The same for losses and norms on the vertical axis.
    pub log_y: bool,
    /// Average over so many updates; 1 or less: as recorded.
    pub smooth: f64,
    /// The gradient norm of each sublayer instead of the total.
    pub per_depth: bool,
    /// The part of the horizontal axis that is looked at, in its units; `None`: all.
    pub range: Option<(f64, f64)>,
}

impl Default for Scales {
    fn default() -> Self {
        Self {
            log_x: false,
            log_y: false,
            smooth: 5.0,
            per_depth: false,
            range: None,
        }
    }
}

/// What the engine does beside the steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beside {
    /// Seconds between two checkpoints by time; `None`: never.
    pub autosave: Option<f64>,
    /// Share of the training time that goes into frames.
    pub share: f64,
}

impl Default for Beside {
    fn default() -> Self {
        Self {
            autosave: Some(AUTOSAVE),
            share: SHARE,
        }
    }
}

/// What stands under the map on narrow windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tab {
    /// The map itself, where there is no room for it beside a tab.
    Map,
    /// What can be done to the map.
    Routing,
    /// The configuration.
    #[default]
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
    /// Scales of the curves.
    pub scales: Scales,
    /// Where the pointer is in any chart, in units of the axis: read out in all of them.
    pub cursor: Option<f64>,
    /// Whether the side columns are tabs under the map.
    pub narrow: bool,
    /// Tab of narrow windows.
    pub tab: Tab,
    /// Edits of the routes that are tried on the held-out data.
    pub edits: Vec<Intervention>,
    /// Whether the interventions are open.
    pub intervening: bool,
    /// File dialogs: what panels ask for, and the answers.
    pub dialogs: Dialogs,
    /// Folders of runs that are no longer compared with: forgotten after this frame.
    pub forget: Vec<String>,
    /// The run on disk is not looked at any longer: after this frame.
    pub look_away: bool,
    /// The configuration that is being edited.
    pub draft: Drafting,
    /// Milliseconds that painting the window takes, lately.
    pub paint: f64,
    /// Whether the log is open.
    pub log: bool,
    /// Whether a run to open is being chosen.
    pub opening: bool,
    /// Whether the list of keys is open.
    pub shortcuts: bool,
    /// What the engine does beside the steps.
    pub beside: Beside,
    /// What is kept between starts: presets, dark or light, whether anything moves by itself.
    pub kept: Kept,
}

impl View {
    /// Have files from outside looked at, and kept if they are a run.
    pub(super) fn import(&self, files: Vec<(String, Vec<u8>)>, out: &mut Vec<Command>) {
        out.push(Command::Import {
            files,
            draft: self.draft.draft(),
            device: self.draft.device.clone(),
        });
    }

    /// Another run is loaded: what was chosen of the one before means nothing in it.
    pub(super) fn leave_run(&mut self) {
        self.moment = Moment::Live;
        (self.selected, self.source) = (None, None);
        self.edits.clear();
    }
}
