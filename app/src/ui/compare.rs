//! Panel: several runs in one table and one chart.

use std::collections::BTreeMap;

use egui::{
    Button, Color32, FontId, Grid, RichText, Role, ScrollArea, Sense, TextEdit, TextStyle, Ui,
    WidgetInfo,
};

use super::chart::{self, Chart, Lens, Style, Trace};
use super::curves;
use super::diff::{self, Difference, Values};
use super::format;
use super::heard::{Curve, Heard, Level, Series};
use super::host::{Answer, Purpose, Wish};
use super::palette;
use super::scales;
use super::smooth::Smoothed;
use super::theme;
use super::ticks;
use super::view::View;
use crate::protocol::Command;

/// From this width on, in points, a run takes one line of the table.
const ONE_LINE: f32 = 320.0;

/// Columns of numbers, and what each is.
const NUMBERS: [(&str, &str); 4] = [
    ("steps", "Updates done"),
    ("val loss", "Last validation loss; nats"),
    ("best", "Lowest validation loss; nats"),
    ("tok/s", "Tokens per second, lately"),
];

/// Which loss the chart shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Loss {
    #[default]
    Validation,
    Training,
}

impl Loss {
    fn of<'a>(self, run: &Run<'a>) -> &'a Curve {
        match self {
            Self::Validation => &run.series.val_loss,
            Self::Training => &run.series.loss,
        }
    }
}

/// What was chosen for a run.
#[derive(Debug)]
struct Look {
    colour: usize,
    hidden: bool,
}

/// Its own state.
#[derive(Debug, Default)]
pub(super) struct Compare {
    folder: String,
    /// The folder that was asked for, and how long the log was then.
    asked: Option<(String, usize)>,
    /// Why a folder could not be chosen.
    refused: Option<String>,
    looks: BTreeMap<String, Look>,
    smoothed: BTreeMap<String, Smoothed>,
    loss: Loss,
    band: Option<(f64, f64)>,
    reading: bool,
    /// Names and differences, and of which configurations.
    differing: (Vec<String>, Vec<String>, Vec<Difference>),
}

/// A run that is compared.
struct Run<'a> {
    folder: &'a str,
    toml: &'a str,
    series: &'a Series,
    current: bool,
}

impl Run<'_> {
    /// Its name, what it is on hover.
    fn label(&self, ui: &mut Ui, name: &str, look: &Look) {
        let text = RichText::new(name).small();
        let text = if self.current { text.strong() } else { text };
        let text = if look.hidden { text.weak() } else { text };
        let about = if self.current {
            "the run that is loaded"
        } else {
            "from disk, or closed"
        };
        ui.add(egui::Label::new(text).truncate())
            .on_hover_text(format!("{name}\n{}\n{about}", self.folder));
    }

    /// What stands under [`NUMBERS`].
    fn numbers(&self) -> [String; 4] {
        let series = self.series;
        let best = series.val_loss.extremes(0..series.val_loss.len());
        let best = best.map(|(low, _)| series.val_loss[low].value);
        let last = series.val_loss.latest().map(|point| point.value);
        let steps = series.loss.last().map_or(0.0, |point| point.step);
        let speed = series.speed.latest().map(|point| point.value);
        let none = || "—".to_owned();
        [
            format::grouped(steps as u64),
            last.map_or_else(none, ticks::figure),
            best.map_or_else(none, ticks::figure),
            speed.map_or_else(none, format::short),
        ]
    }
}

/// The run that is loaded, or was last, and the others.
fn runs(heard: &Heard) -> Vec<Run<'_>> {
    let current = heard.run.as_ref().or(heard.closed.as_ref());
    let first = current.map(|run| Run {
        folder: &run.folder,
        toml: &run.toml,
        series: &heard.series,
        current: true,
    });
    let others = heard
        .others
        .iter()
        .filter(|other| current.is_none_or(|run| run.folder != other.folder));
    let others = others.map(|other| Run {
        folder: &other.folder,
        toml: &other.toml,
        series: &other.series,
        current: false,
    });
    first.into_iter().chain(others).collect()
}

impl Compare {
    /// How many runs there are.
    pub(super) fn count(&self, heard: &Heard) -> usize {
        runs(heard).len()
    }

    /// Draw it.
    pub(super) fn show(
        &mut self,
        ui: &mut Ui,
        heard: &Heard,
        view: &mut View,
        out: &mut Vec<Command>,
    ) {
        let runs = runs(heard);
        self.add(ui, heard, view, out);
        if runs.is_empty() {
            let words = "Runs appear here side by side: the one that is loaded, those before it, and any from disk.";
            scales::empty(ui, words, 80.0);
            return;
        }
        self.name(&runs);
        for run in &runs {
            if !self.looks.contains_key(run.folder) {
                let taken = |colour: &usize| self.looks.values().any(|look| look.colour == *colour);
                let free = (0..palette::COLOURS).find(|colour| !taken(colour));
                let colour = free.unwrap_or(self.looks.len());
                self.looks.insert(
                    run.folder.to_owned(),
                    Look {
                        colour,
                        hidden: false,
                    },
                );
            }
        }
        self.table(ui, &runs, view);
        self.chart(ui, &runs, heard, view);
        self.configs(ui, &runs);
        self.looks.retain(|folder, _| !view.forget.contains(folder));
        self.smoothed
            .retain(|folder, _| !view.forget.contains(folder));
    }

    /// Names and differences, made again when a run comes, goes or changes.
    fn name(&mut self, runs: &[Run<'_>]) {
        let texts = runs.iter().map(|run| run.toml);
        if self
            .differing
            .0
            .iter()
            .map(String::as_str)
            .eq(texts.clone())
            && !self.differing.1.is_empty()
        {
            return;
        }
        let values: Vec<Values> = texts.clone().map(diff::values).collect();
        let last = |run: &Run<'_>| {
            let parts = run.folder.rsplit(['/', '\\']).find(|part| !part.is_empty());
            parts.unwrap_or("this run").to_owned()
        };
        let folders: Vec<String> = runs.iter().map(last).collect();
        let names = diff::names(&values, &folders);
        self.differing = (
            texts.map(str::to_owned).collect(),
            names,
            diff::differences(&values),
        );
    }

    /// The line that adds a run from disk.
    fn add(&mut self, ui: &mut Ui, heard: &Heard, view: &mut View, out: &mut Vec<Command>) {
        let mut add = None;
        let size = egui::vec2(ui.available_width(), ui.spacing().interact_size.y);
        // From the right, so that the field takes what the buttons leave.
        let layout = egui::Layout::right_to_left(egui::Align::Center);
        if !view.dialogs.has_folders() {
            ui.menu_button("Add a run …", |ui| {
                if heard.runs.is_empty() {
                    ui.label("No run is kept in this browser yet.");
                }
                for run in &heard.runs {
                    let name = run.folder.rsplit('/').next().unwrap_or_default();
                    if ui.button(name).clicked() {
                        add = Some(run.folder.clone());
                    }
                }
            });
        } else {
            ui.allocate_ui_with_layout(size, layout, |ui| {
                let choose = ui
                    .button("Choose…")
                    .on_hover_text("Choose the folder of a run");
                if choose.clicked() {
                    view.dialogs.ask(Purpose::CompareRun, Wish::OpenFolder);
                }
                let folder = self.folder.trim().to_owned();
                let button = ui.add_enabled(!folder.is_empty(), Button::new("Add run"));
                let button = button.on_disabled_hover_text("Write the folder of a run first");
                let edit = TextEdit::singleline(&mut self.folder)
                    .align(theme::beginning(ui))
                    .hint_text("folder of a run on disk");
                let edit = ui.add(edit.desired_width(ui.available_width()));
                let text = self.folder.clone();
                edit.widget_info(|| {
                    let mut info = WidgetInfo::text_edit(true, "", text.as_str(), "");
                    info.label = Some("Folder of a run to compare with".into());
                    info
                });
                let enter =
                    edit.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
                if !folder.is_empty() && (button.clicked() || enter) {
                    add = Some(folder);
                }
            });
        }
        match view.dialogs.take(Purpose::CompareRun) {
            Some(Answer::Folder(folder)) => add = Some(folder),
            Some(Answer::Failed(message)) => self.refused = Some(message),
            _ => {}
        }
        if let Some(folder) = add {
            self.refused = None;
            self.asked = Some((folder.clone(), heard.log.len()));
            out.push(Command::History { folder });
        }
        if let Some(message) = &self.refused {
            ui.colored_label(ui.visuals().error_fg_color, message);
        }
        let Some((folder, before)) = &self.asked else {
            return;
        };
        if heard.others.iter().any(|other| other.folder == *folder) {
            self.asked = None;
            self.folder.clear();
            return;
        }
        let since = heard.log.get(*before..).unwrap_or_default();
        let failed = |text: &str| text.strip_prefix("history: ").map(str::to_owned);
        let error = since.iter().filter(|entry| entry.level == Level::Error);
        match error.filter_map(|entry| failed(&entry.text)).next_back() {
            Some(message) => ui.colored_label(ui.visuals().error_fg_color, message),
            None => ui.label(RichText::new(format!("Reading {folder} …")).small().weak()),
        };
    }

    fn table(&mut self, ui: &mut Ui, runs: &[Run<'_>], view: &mut View) {
        if ui.available_width() < ONE_LINE {
            return self.low_table(ui, runs, view);
        }
        // What the other columns leave.
        let width = (ui.available_width() - 236.0).clamp(64.0, 320.0);
        let names = &self.differing.1;
        let looks = &mut self.looks;
        ScrollArea::horizontal().id_salt("table").show(ui, |ui| {
            Grid::new("runs")
                .min_col_width(0.0)
                .striped(true)
                .spacing([7.0, 3.0])
                .show(ui, |ui| {
                    let run = ("run", "What differs in its configuration");
                    let heads = [&[("", ""), run][..], &NUMBERS, &[("", ""), ("", "")]];
                    for &(head, help) in heads.into_iter().flatten() {
                        head_label(ui, head, help);
                    }
                    ui.end_row();
                    for (run, name) in runs.iter().zip(names) {
                        let Some(look) = looks.get_mut(run.folder) else {
                            continue;
                        };
                        swatch(ui, look, name, ui.visuals().dark_mode);
                        ui.scope(|ui| {
                            ui.set_width(width);
                            run.label(ui, name, look);
                        });
                        for number in run.numbers() {
                            right(ui, mono(ui, number));
                        }
                        tick(ui, look, name);
                        remove(ui, run, name, view);
                        ui.end_row();
                    }
                });
        });
    }

    /// The same on two lines each, where there is no room for all columns.
    fn low_table(&mut self, ui: &mut Ui, runs: &[Run<'_>], view: &mut View) {
        let gap = ui.spacing().item_spacing.x;
        let width = (ui.available_width() - 3.0 * gap) / 4.0;
        let cell = |ui: &mut Ui, contents: &mut dyn FnMut(&mut Ui)| {
            let size = egui::vec2(width, ui.text_style_height(&TextStyle::Small) + 3.0);
            let layout = egui::Layout::right_to_left(egui::Align::Center);
            ui.allocate_ui_with_layout(size, layout, |ui| {
                ui.set_width(width);
                contents(ui);
            });
        };
        ui.horizontal(|ui| {
            for (head, help) in NUMBERS {
                cell(ui, &mut |ui| head_label(ui, head, help));
            }
        });
        for (run, name) in runs.iter().zip(&self.differing.1) {
            let Some(look) = self.looks.get_mut(run.folder) else {
                continue;
            };
            let size = egui::vec2(ui.available_width(), ui.spacing().interact_size.y);
            // From the right, so that the name takes what is left.
            let layout = egui::Layout::right_to_left(egui::Align::Center);
            ui.allocate_ui_with_layout(size, layout, |ui| {
                remove(ui, run, name, view);
                tick(ui, look, name);
                ui.with_layout(egui::Layout::left_to_right(egui::Align::Center), |ui| {
                    swatch(ui, look, name, ui.visuals().dark_mode);
                    run.label(ui, name, look);
                });
            });
            ui.horizontal(|ui| {
                for number in run.numbers() {
                    cell(ui, &mut |ui| {
                        ui.label(mono(ui, number.clone()));
                    });
                }
            });
        }
    }

    fn chart(&mut self, ui: &mut Ui, runs: &[Run<'_>], heard: &Heard, view: &mut View) {
        ui.horizontal(|ui| {
            let small = |text: &str| RichText::new(text).small();
            ui.selectable_value(&mut self.loss, Loss::Validation, small("validation loss"));
            ui.selectable_value(&mut self.loss, Loss::Training, small("training loss"));
        });
        let dark = ui.visuals().dark_mode;
        let window = view.scales.smooth;
        let visible: Vec<(usize, &Run<'_>)> = runs
            .iter()
            .enumerate()
            .filter(|(_, run)| !self.looks[run.folder].hidden)
            .collect();
        for (_, run) in &visible {
            let smoothed = self.smoothed.entry(run.folder.to_owned()).or_default();
            if self.loss == Loss::Training && window > 1.0 {
                smoothed.of(&run.series.loss, window);
            }
        }
        let loss = self.loss;
        let mut lens = Lens::new(
            view,
            visible.iter().map(|(_, run)| loss.of(run)),
            None,
            curves::shown(heard, view),
            self.band,
        );
        let mut traces = Vec::new();
        let trace = |index: usize, curve, colour, style, read| Trace {
            name: self.differing.1[index].clone(),
            curve,
            colour,
            style,
            read,
        };
        for (index, run) in &visible {
            let colour: Color32 = palette::colour(self.looks[run.folder].colour, dark);
            match (self.loss, window > 1.0) {
                (Loss::Validation, _) => {
                    traces.push(trace(*index, loss.of(run), colour, Style::Dotted, true))
                }
                (Loss::Training, false) => {
                    traces.push(trace(*index, loss.of(run), colour, Style::Solid, true))
                }
                (Loss::Training, true) => {
                    traces.push(trace(*index, loss.of(run), colour, Style::Thin, false));
                    traces.push(trace(
                        *index,
                        self.smoothed[run.folder].curve(),
                        colour,
                        Style::Solid,
                        true,
                    ));
                }
            }
        }
        let chart = Chart {
            title: if self.loss == Loss::Validation {
                "Validation loss"
            } else {
                "Training loss"
            },
            unit: "nats",
            log: view.scales.log_y,
            zero: false,
            factor: 1.0,
            height: 180.0 + chart::BELOW,
            numbers: true,
            wrap: true,
            traces,
        };
        chart.show(ui, &mut lens);
        curves::answer(&lens, heard, view, (&mut self.band, &mut self.reading));
    }

    /// The differences of the configurations, and nothing else of them.
    fn configs(&self, ui: &mut Ui, runs: &[Run<'_>]) {
        let (_, names, differences) = &self.differing;
        if runs.len() < 2 {
            return;
        }
        ui.label(RichText::new("What differs").small().strong());
        if differences.is_empty() {
            ui.label(
                RichText::new("Nothing: the configurations are equal.")
                    .small()
                    .weak(),
            );
            return;
        }
        let mono = FontId::monospace(TextStyle::Small.resolve(ui.style()).size);
        ScrollArea::horizontal().id_salt("configs").show(ui, |ui| {
            Grid::new("configs")
                .min_col_width(0.0)
                .striped(true)
                .spacing([10.0, 3.0])
                .show(ui, |ui| {
                    ui.label("");
                    for name in names {
                        ui.label(RichText::new(name).small().strong());
                    }
                    ui.end_row();
                    for difference in differences {
                        ui.label(RichText::new(&difference.key).small().weak());
                        for value in &difference.values {
                            let text = value.as_deref().unwrap_or("–");
                            ui.label(RichText::new(text).font(mono.clone()));
                        }
                        ui.end_row();
                    }
                });
        });
    }
}

/// The colour of a run: a click takes the next one.
fn swatch(ui: &mut Ui, look: &mut Look, name: &str, dark: bool) {
    let size = if theme::is_touch(ui) {
        egui::vec2(28.0, theme::FINGER)
    } else {
        egui::vec2(14.0, 14.0)
    };
    let (rect, response) = ui.allocate_exact_size(size, Sense::click());
    response.widget_info(|| WidgetInfo::labeled(Role::Button, true, format!("Colour of {name}")));
    let colour = palette::colour(look.colour, dark);
    let colour = if look.hidden {
        colour.gamma_multiply(0.3)
    } else {
        colour
    };
    let square = egui::Rect::from_center_size(rect.center(), egui::Vec2::splat(10.0));
    ui.painter().rect_filled(square, 2.0, colour);
    if response.has_focus() || response.hovered() {
        let stroke = egui::Stroke::new(1.0, ui.visuals().strong_text_color());
        ui.painter()
            .rect_stroke(rect, 2.0, stroke, egui::StrokeKind::Inside);
    }
    if response.on_hover_text("Another colour").clicked() {
        look.colour += 1;
    }
}

/// The head of a column.
fn head_label(ui: &mut Ui, head: &str, help: &str) {
    let label = ui.label(RichText::new(head).small().weak());
    if !help.is_empty() {
        label.on_hover_text(help);
    }
}

/// A number.
fn mono(ui: &Ui, number: String) -> RichText {
    let font = FontId::monospace(TextStyle::Small.resolve(ui.style()).size);
    RichText::new(number).font(font)
}

/// Whether a run is in the chart.
fn tick(ui: &mut Ui, look: &mut Look, name: &str) {
    let mut seen = !look.hidden;
    let check = ui
        .checkbox(&mut seen, "")
        .on_hover_text("Show it in the chart");
    check.widget_info(|| WidgetInfo::selected(Role::CheckBox, true, seen, format!("Show {name}")));
    look.hidden = !seen;
}

/// The button that takes a run out of the comparison.
fn remove(ui: &mut Ui, run: &Run<'_>, name: &str, view: &mut View) {
    let remove = ui.add_enabled(!run.current, theme::small(ui, "×"));
    remove
        .widget_info(|| WidgetInfo::labeled(Role::Button, !run.current, format!("Remove {name}")));
    let remove = remove.on_hover_text("Take it out of the comparison; nothing is deleted on disk");
    if remove
        .on_disabled_hover_text("The run that is loaded stays")
        .clicked()
    {
        view.forget.push(run.folder.to_owned());
    }
}

/// A number, or the head of a column of numbers, at the right end of its cell.
fn right(ui: &mut Ui, text: RichText) -> egui::Response {
    let layout = egui::Layout::right_to_left(egui::Align::Center);
    ui.with_layout(layout, |ui| ui.label(text)).inner
}
