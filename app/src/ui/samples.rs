//! Panel: texts that the model wrote.

use egui::text::LayoutJob;
use egui::{
    Color32, DragValue, FontId, RichText, Role, ScrollArea, Stroke, TextEdit, TextFormat,
    TextStyle, Ui, WidgetInfo,
};

use super::format;
use super::heard::Heard;
use super::palette;
use super::scales;
use super::theme;
use crate::protocol::{Command, Sampled};

/// Texts that are laid out at once; the rest on demand.
const AT_ONCE: usize = 12;

/// Its own state.
#[derive(Debug)]
pub(super) struct Samples {
    prompt: String,
    tokens: usize,
    temperature: f64,
    seed: u64,
    /// Write one every so many updates.
    every: Option<u64>,
    /// The last `every`, while it is off.
    interval: u64,
    /// What was said last about those that are written by themselves.
    told: Option<Command>,
    /// Answers that had come when one was asked for: no second question before the first is answered.
    waiting: Option<u64>,
    /// Colour tokens by their probability.
    coloured: bool,
    /// Show those that are older than [`AT_ONCE`].
    all: bool,
}

impl Default for Samples {
    fn default() -> Self {
        Self {
            prompt: String::new(),
            tokens: 64,
            temperature: 0.8,
            seed: 1,
            every: Some(100),
            interval: 100,
            told: None,
            waiting: None,
            coloured: false,
            all: false,
        }
    }
}

impl Samples {
    /// Say what is to be written by itself, if that has changed. Call once a frame.
    pub(super) fn tick(&mut self, heard: &Heard, out: &mut Vec<Command>) {
        if self
            .waiting
            .is_some_and(|answers| answers != heard.answers_to_sample)
            || heard.run.is_none()
        {
            self.waiting = None;
        }
        let wish = Command::SampleEvery {
            every: self.every,
            prompt: self.prompt.clone(),
            tokens: self.tokens,
            temperature: self.temperature,
            seed: self.seed,
        };
        if self.told.as_ref() != Some(&wish) {
            out.push(wish.clone());
            self.told = Some(wish);
        }
    }

    /// Say it again in the next frame.
    pub(super) fn tell_again(&mut self) {
        self.told = None;
    }

    fn ask(&mut self, heard: &Heard, out: &mut Vec<Command>) {
        self.waiting = Some(heard.answers_to_sample);
        out.push(Command::Sample {
            prompt: self.prompt.clone(),
            tokens: self.tokens,
            temperature: self.temperature,
            seed: self.seed,
        });
    }

    /// Draw it on this height.
    pub(super) fn show(&mut self, ui: &mut Ui, heard: &Heard, height: f32, out: &mut Vec<Command>) {
        let top = ui.cursor().top();
        self.controls(ui, heard, out);
        let rest = height - (ui.cursor().top() - top);
        if heard.samples.is_empty() {
            let words = match heard.run {
                None => "Texts that the model writes appear here. Start a run first.",
                Some(_) if self.waiting.is_some() => "The first text is being written …",
                Some(_) => {
                    "Nothing written yet. \"Write now\" continues the prompt with the model as it is at this step."
                }
            };
            scales::empty(ui, words, rest);
            return;
        }
        let monospace = heard.subject().is_some_and(|run| {
            run.values
                .iter()
                .any(|(key, value)| key == "data.task" && !value.trim_matches('"').is_empty())
        });
        ScrollArea::vertical()
            .id_salt("texts")
            .max_height(rest.max(80.0))
            .min_scrolled_height(rest.max(80.0))
            .auto_shrink(false)
            .show(ui, |ui| {
                let shown = if self.all {
                    heard.samples.len()
                } else {
                    AT_ONCE
                };
                for (index, sample) in heard.samples.iter().enumerate().rev().take(shown) {
                    ui.push_id(index, |ui| text(ui, sample, monospace, self.coloured));
                }
                let older = heard.samples.len().saturating_sub(shown);
                if older > 0 && ui.button(format!("Show {older} older")).clicked() {
                    self.all = true;
                }
            });
    }

    fn controls(&mut self, ui: &mut Ui, heard: &Heard, out: &mut Vec<Command>) {
        let small = |text: &str| RichText::new(text).small();
        let size = egui::vec2(ui.available_width(), ui.spacing().interact_size.y);
        // From the right, so that the field takes what the button leaves.
        let layout = egui::Layout::right_to_left(egui::Align::Center);
        ui.allocate_ui_with_layout(size, layout, |ui| {
            let ready = heard.run.is_some() && self.waiting.is_none();
            let text = if self.waiting.is_some() {
                "Writing…"
            } else {
                "Write now"
            };
            let button = egui::Button::new(text).min_size(egui::vec2(78.0, 0.0));
            let button = ui.add_enabled(ready, button);
            let help = match heard.run {
                None => "Start a run first",
                Some(_) => "The text before is not finished yet",
            };
            let button = button.on_disabled_hover_text(help);
            let edit = TextEdit::singleline(&mut self.prompt)
                .align(theme::beginning(ui))
                .hint_text("prompt; empty: a validation sequence")
                .desired_width(ui.available_width());
            let edit = ui
                .add(edit)
                .on_hover_text("The text that the model continues");
            let prompt = self.prompt.clone();
            edit.widget_info(|| {
                let mut info = WidgetInfo::text_edit(true, "", prompt.as_str(), "");
                info.label = Some("Prompt".into());
                info
            });
            let enter = edit.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
            if ready && (button.clicked() || enter) {
                self.ask(heard, out);
            }
        });
        ui.horizontal_wrapped(|ui| {
            ui.spacing_mut().item_spacing.x = 4.0;
            let label = ui.label(small("length"));
            let drag = DragValue::new(&mut self.tokens)
                .range(1..=1024)
                .suffix(" tokens");
            ui.add(drag)
                .labelled_by(label.id)
                .on_hover_text("Tokens to add");
            let label = ui.label(small("temperature"));
            let drag = DragValue::new(&mut self.temperature)
                .range(0.0..=2.0)
                .speed(0.01)
                .fixed_decimals(2);
            ui.add(drag)
                .labelled_by(label.id)
                .on_hover_text("0: always the most likely token; 1: as the model says");
            let label = ui.label(small("seed"));
            let drag = DragValue::new(&mut self.seed).range(0..=u64::from(u32::MAX));
            ui.add(drag)
                .labelled_by(label.id)
                .on_hover_text("The same seed and the same weights give the same text");
        });
        ui.horizontal_wrapped(|ui| {
            ui.spacing_mut().item_spacing.x = 4.0;
            let mut on = self.every.is_some();
            let check = ui.checkbox(&mut on, small("write every"));
            check.on_hover_text("A text each time so many updates are done, with the parameters of just that update; it is kept in the run");
            let drag = DragValue::new(&mut self.interval).range(1..=100_000).suffix(" updates");
            let drag = ui.add_enabled(on, drag);
            drag.widget_info(|| WidgetInfo::labeled(Role::SpinButton, on, "Updates between texts"));
            self.every = on.then_some(self.interval);
            ui.separator();
            ui.toggle_value(&mut self.coloured, small("colour by probability"))
                .on_hover_text("The stronger the ground, the less likely the model (at temperature 1) held the token that was chosen");
        });
        if self.coloured {
            legend(ui);
        }
    }
}

/// What the colours mean.
fn legend(ui: &mut Ui) {
    let dark = ui.visuals().dark_mode;
    ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = 3.0;
        ui.label(RichText::new("probability at temperature 1").small().weak());
        for probability in [1.0, 0.75, 0.5, 0.25, 0.0] {
            let text = RichText::new(format!(" {} ", format::percent(probability)));
            ui.label(
                text.small()
                    .background_color(palette::surprise(probability, dark)),
            );
        }
        ui.label(RichText::new("· prompt grey").small().weak());
    });
}

/// One text: a line about it, and its tokens.
fn text(ui: &mut Ui, sample: &Sampled, monospace: bool, coloured: bool) {
    ui.horizontal(|ui| {
        let chosen: Vec<f64> = sample.tokens.iter().filter_map(|token| token.probability).collect();
        let nats = chosen.iter().map(|p| -p.max(f64::MIN_POSITIVE).ln()).sum::<f64>();
        let step = format!("step {}", format::grouped(sample.step));
        ui.label(RichText::new(step).small().strong());
        let about = format!("temperature {:.2} · seed {}", sample.temperature, sample.seed);
        ui.label(RichText::new(about).small().weak());
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            let copy = ui.add(theme::small(ui, "copy")).on_hover_text("Copy this text");
            if copy.clicked() {
                ui.ctx().copy_text(whole(sample));
            }
            if !chosen.is_empty() {
                let mean = format!("{:.2} nats/token", nats / chosen.len() as f64);
                let help = "Mean of −ln p over the tokens that were chosen, as the model holds them (at temperature 1)";
                ui.label(RichText::new(mean).small().weak()).on_hover_text(help);
            }
        });
    });
    let style = if monospace {
        TextStyle::Monospace
    } else {
        TextStyle::Body
    };
    let font = FontId::new(
        TextStyle::Small.resolve(ui.style()).size + 2.0,
        style.resolve(ui.style()).family,
    );
    let visuals = ui.visuals();
    let (strong, weak, dark) = (
        visuals.text_color(),
        visuals.weak_text_color(),
        visuals.dark_mode,
    );
    let mut job = LayoutJob::default();
    job.wrap.max_width = ui.available_width();
    // Where each token ends, in characters.
    let mut ends = Vec::with_capacity(sample.tokens.len());
    let mut characters = 0;
    for token in &sample.tokens {
        let background = match token.probability {
            Some(probability) if coloured => palette::surprise(probability, dark),
            _ => Color32::TRANSPARENT,
        };
        let color = if token.probability.is_some() {
            strong
        } else {
            weak
        };
        let format = TextFormat {
            font_id: font.clone(),
            color,
            background,
            ..TextFormat::default()
        };
        job.append(&token.text, 0.0, format);
        characters += token.text.chars().count();
        ends.push(characters);
    }
    let galley = ui.painter().layout_job(job);
    let (rect, response) = ui.allocate_exact_size(
        egui::vec2(ui.available_width(), galley.size().y),
        egui::Sense::hover(),
    );
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, whole(sample)));
    ui.painter().galley(rect.min, galley.clone(), strong);
    if let Some(pointer) = response.hover_pos() {
        let at = galley.cursor_from_pos(pointer - rect.min).index;
        // The cursor is between two characters: take the one under the pointer.
        let cursor = galley.pos_from_cursor(egui::text::CCursor::new(at));
        let before = cursor.left() + rect.left() > pointer.x;
        let character = usize::from(at).saturating_sub(usize::from(before));
        let index = ends.partition_point(|&end| end <= character);
        if let Some(token) = sample.tokens.get(index) {
            let shown = format!("{:?}", token.text);
            let words = match token.probability {
                Some(p) => format!("{shown}  probability {} at temperature 1", share(p)),
                None => format!("{shown}  prompt"),
            };
            mark(ui, &galley, rect, index, &ends);
            response.on_hover_text_at_pointer(words);
        }
    }
    ui.add_space(4.0);
}

/// A line under the token that is told about.
fn mark(ui: &Ui, galley: &egui::Galley, rect: egui::Rect, index: usize, ends: &[usize]) {
    let start = index.checked_sub(1).map_or(0, |before| ends[before]);
    let (from, to) = (
        galley.pos_from_cursor(egui::text::CCursor::new(start)),
        ends[index],
    );
    let to = galley.pos_from_cursor(egui::text::CCursor::new(to));
    // A token that goes over the end of a line is marked to the end of the first one.
    let right = if (to.top() - from.top()).abs() < 1.0 {
        to.left()
    } else {
        rect.width()
    };
    let y = rect.top() + from.bottom() - 1.0;
    let points = [
        egui::pos2(rect.left() + from.left(), y),
        egui::pos2(rect.left() + right, y),
    ];
    ui.painter()
        .line_segment(points, Stroke::new(1.5, ui.visuals().strong_text_color()));
}

/// `61 %`, `0.3 %`, `< 0.1 %`
fn share(probability: f64) -> String {
    match probability {
        p if p >= 0.0995 => format::percent(p),
        p if p >= 0.001 => format!("{:.1} %", 100.0 * p),
        _ => "< 0.1 %".into(),
    }
}

/// Prompt and continuation as one text.
fn whole(sample: &Sampled) -> String {
    sample
        .tokens
        .iter()
        .map(|token| token.text.as_str())
        .collect()
}
