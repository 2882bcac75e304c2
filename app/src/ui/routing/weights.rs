//! The map with its legend, its words, and a second run beside it.

use egui::{Button, ComboBox, Rect, Ui, vec2};

use super::empty;
use super::export::Export;
use super::grid::{Grid, streams};
use super::heat;
use super::map::Map;
use super::scale::{Range, Scale};
use super::shown::{Shown, nearest};
use super::words::{is_decided, sentence, sharpest};
use crate::protocol::{Frame, Site};
use crate::ui::format::grouped;
use crate::ui::heard::{Heard, OtherRun};
use crate::ui::view::{Tab, View};

/// Least height of the map: a panel that is lower is scrolled.
const LEAST: f32 = 130.0;

/// Room for legend and words under the map.
const UNDER: f32 = 92.0;

/// The same where the words are left out.
const UNDER_LEGEND: f32 = 34.0;

/// The same where only the way to the interventions is.
const UNDER_WORDS: f32 = 84.0;

/// Below this height, in points, the interventions say what is selected, and nothing else does.
const LOW: f32 = 380.0;

/// Choices of this view.
#[derive(Debug, Default)]
pub(super) struct Weights {
    range: Range,
    difference: bool,
    /// Folder of the run beside it.
    other: Option<String>,
    export: Export,
}

/// Grids of all streams, and of the difference if it is wanted and there are two.
fn grids(sites: &[Site], difference: bool) -> Vec<Grid> {
    let count = streams(sites);
    let mut grids: Vec<Grid> = (0..count).map(|s| Grid::stream(sites, s)).collect();
    if difference && count == 2 {
        grids.push(Grid::difference(sites));
    }
    grids
}

/// Values of the streams, or of the differences.
fn values(grids: &[Grid], difference: bool) -> impl Iterator<Item = f64> + '_ {
    let wanted = grids
        .iter()
        .filter(move |g| g.stream.is_none() == difference);
    wanted.flat_map(Grid::values)
}

/// The last part of a folder.
fn name(folder: &str) -> &str {
    let parts = folder.rsplit(['/', '\\']);
    parts.into_iter().find(|p| !p.is_empty()).unwrap_or(folder)
}

impl Weights {
    /// Draw it.
    pub(super) fn show(&mut self, ui: &mut Ui, heard: &Heard, view: &mut View) {
        let shown = Shown::of(heard, view);
        let sites = shown.sites();
        if streams(sites) == 0 {
            nothing(ui, heard, &shown);
            return;
        }
        let trained = matches!(shown, Shown::Frame(_));
        let other = self.other(heard);
        // Beside a second run, there is room for the streams only.
        let grids = grids(sites, self.difference && other.is_none());
        let beside = other.and_then(|run| {
            let frames = run.series.frames.list();
            let step = match shown {
                Shown::Frame(frame) => frame.step,
                _ => return None,
            };
            Some((run, nearest(frames, step).map(|at| &frames[at])))
        });
        let other_grids = match beside {
            Some((_, Some(frame))) => self::grids(&frame.sites, false),
            _ => Vec::new(),
        };
        let all = || values(&grids, false).chain(values(&other_grids, false));
        let scale = Scale::of(all(), self.range);
        let difference = Scale::difference(values(&grids, true));

        let two = streams(sites) == 2;
        let low = ui.available_height() < LOW;
        let brief = trained && view.intervening && low && !view.narrow;
        let below = match (brief, trained && view.narrow) {
            (true, _) => UNDER_LEGEND,
            (_, true) => UNDER_WORDS,
            _ => UNDER,
        };
        let asked = trained
            .then(|| self.options(ui, heard, two, scale))
            .flatten();
        let space = vec2(
            ui.available_width(),
            (ui.available_height() - below).max(LEAST),
        );
        let frame = match shown {
            Shown::Frame(frame) => Some(frame),
            _ => None,
        };
        let map = Map {
            name: "routing map",
            sites,
            grids: &grids,
            scale,
            difference,
            trained,
            moment: frame.map_or((0, 0), |frame| (frame.step, frame.tokens)),
            edits: &view.edits.clone(),
        };
        let mut picture = match beside {
            Some(beside) => {
                let mine = heard.run.as_ref().map_or("this run", |run| &run.name);
                let half = vec2(0.5 * space.x - 6.0, space.y - 18.0);
                let row = ui.horizontal_top(|ui| {
                    ui.vertical(|ui| {
                        ui.set_width(half.x);
                        ui.label(format!("{mine}, step {}", grouped(map.moment.0)));
                        map.show(ui, half, view);
                    });
                    ui.vertical(|ui| {
                        ui.set_width(half.x);
                        second(ui, beside, &other_grids, scale, half);
                    });
                });
                row.response.rect
            }
            None => map.show(ui, space, view),
        };
        let legends = ui.horizontal_wrapped(|ui| {
            if trained {
                let title = match scale {
                    _ if scale.shares() && brief => "weight, %",
                    _ if scale.shares() => "mean weight (in cells: %)",
                    Scale::Sequential { .. } => "mean weight",
                    Scale::Diverging { .. } => "mean weight (symmetric log)",
                };
                heat::legend(ui, scale, title);
                if grids.iter().any(|grid| grid.stream.is_none()) {
                    heat::legend(ui, difference, "difference");
                }
            } else {
                ui.strong("not trained yet");
                ui.weak("hatched: the site can read this source; all weigh the same at first");
            }
            if brief {
                intervene(ui, view);
            }
        });
        picture = picture.union(legends.response.rect);
        if !brief {
            under(ui, sites, trained, view);
        }
        if let Some(format) = asked {
            self.export
                .give(ui, format, &grids, map.moment, picture, view);
        }
        self.export.poll(ui, view);
    }

    fn other<'a>(&self, heard: &'a Heard) -> Option<&'a OtherRun> {
        let folder = self.other.as_ref()?;
        heard.others.iter().find(|run| run.folder == *folder)
    }

    /// Scale, difference, second run, export. Returns what is to be exported.
    fn options(
        &mut self,
        ui: &mut Ui,
        heard: &Heard,
        two: bool,
        scale: Scale,
    ) -> Option<super::export::Format> {
        let mut asked = None;
        ui.horizontal_wrapped(|ui| {
            if scale.shares() {
                let label = ui.weak("scale");
                let combo = ComboBox::from_id_salt("scale")
                    .selected_text(self.range.name())
                    .width(78.0)
                    .show_ui(ui, |ui| {
                        for range in Range::ALL {
                            ui.selectable_value(&mut self.range, range, range.name());
                        }
                    });
                combo.response.labelled_by(label.id);
            }
            if two && self.other(heard).is_none() {
                ui.checkbox(&mut self.difference, "difference")
                    .on_hover_text("Stream 0 minus stream 1, beside them");
            }
            if !heard.others.is_empty() {
                let label = ui.weak("beside");
                let chosen = self.other.as_deref().map_or("nothing", name);
                let combo = ComboBox::from_id_salt("beside")
                    .selected_text(chosen)
                    .width(110.0)
                    .show_ui(ui, |ui| {
                        ui.selectable_value(&mut self.other, None, "nothing");
                        for run in &heard.others {
                            let folder = Some(run.folder.clone());
                            ui.selectable_value(&mut self.other, folder, name(&run.folder));
                        }
                    });
                combo.response.labelled_by(label.id);
            }
            asked = Export::menu(ui);
        });
        asked
    }
}

/// The map of another run at the nearest step.
fn second(
    ui: &mut Ui,
    (run, frame): (&OtherRun, Option<&Frame>),
    grids: &[Grid],
    scale: Scale,
    space: egui::Vec2,
) -> Rect {
    let title = name(&run.folder);
    let Some(frame) = frame.filter(|_| !grids.is_empty()) else {
        ui.label(title);
        empty::say(
            ui,
            "No depth weights",
            "This run recorded none: its mechanism adds every output to one stream, or mixes streams.",
        );
        return ui.min_rect();
    };
    ui.label(format!("{title}, step {}", grouped(frame.step)));
    // Its selection is its own: sites of two models need not correspond.
    let mut apart = View::default();
    let map = Map {
        name: "routing map of the other run",
        sites: &frame.sites,
        grids,
        scale,
        difference: scale,
        trained: true,
        moment: (frame.step, frame.tokens),
        edits: &[],
    };
    map.show(ui, space, &mut apart)
}

/// The words under the map, and the way to the interventions.
fn under(ui: &mut Ui, sites: &[Site], trained: bool, view: &mut View) {
    let known = |read: &(u32, usize)| sentence(sites, *read).is_some();
    let selected = view.selected.filter(known);
    let line = match (trained, selected) {
        (true, Some(read)) => sentence(sites, read).unwrap_or_default(),
        (true, None) => match sharpest(sites).and_then(|at| Some((at, sentence(sites, at)?))) {
            Some((at, line)) if is_decided(sites, at) => format!("Sharpest: {line}"),
            Some((_, line)) => format!("All reads are close to uniform yet; the sharpest: {line}"),
            None => "No site has a choice of sources".into(),
        },
        (false, _) => "Press Start to see where each site turns".into(),
    };
    let mut line = line;
    if let Some(first) = line.get(..1) {
        let first = first.to_uppercase();
        line.replace_range(..1, &first);
    }
    ui.label(line);
    // In a narrow window, the tab for it is near.
    if trained && !view.narrow {
        ui.horizontal_wrapped(|ui| {
            ui.weak("Weight is not importance:");
            intervene(ui, view);
        });
    }
}

/// The way to the interventions, and back.
fn intervene(ui: &mut Ui, view: &mut View) {
    let hint = "Cut, pin, swap or level routes, and see what it does to the held-out loss";
    let button = Button::new("Test by intervening").selected(view.intervening);
    if ui.add(button).on_hover_text(hint).clicked() {
        view.intervening = !view.intervening;
        // In a narrow window, they are a tab.
        view.tab = Tab::Routing;
    }
}

/// Why there is no map.
fn nothing(ui: &mut Ui, heard: &Heard, shown: &Shown<'_>) {
    match shown {
        Shown::Nothing if heard.run.is_none() => empty::say(
            ui,
            "No model yet",
            "Choose a mechanism and a size at the left; the map shows which sublayer can read which earlier output.",
        ),
        Shown::Nothing => empty::say(
            ui,
            "No routing frame yet",
            "The first one comes after a few updates.",
        ),
        _ if shown.sites().iter().any(|site| site.mix.is_some()) => empty::say(
            ui,
            "This mechanism mixes streams",
            "Its sublayers read a mixture of parallel streams instead of choosing earlier outputs. See Gates for the mixing, Unfolded for the coefficients.",
        ),
        _ => empty::say(
            ui,
            "This mechanism has no depth weights",
            "Every sublayer reads the sum of all earlier outputs. See Unfolded for its coefficients, Norms for what flows.",
        ),
    }
}
