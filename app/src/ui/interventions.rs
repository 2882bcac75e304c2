//! Panel: edit routes and see what it costs.

use egui::{
    Button, Color32, Key, Label, Modifiers, Rect, RichText, Role, ScrollArea, Sense, Stroke, Ui,
    WidgetInfo, pos2, vec2,
};

use super::format::grouped;
use super::heard::{Heard, Level};
use super::routing::{frame, read_words};
use super::theme;
use super::view::{Moment, View};
use crate::names::source_words;
use crate::protocol::{Command, Effect, Intervention, RouteEdit, RunState, Site, Stream};

/// A question that has not been answered.
#[derive(Clone, Debug)]
struct Question {
    /// Lines of the log when it was asked: a failure is an answer too.
    log: usize,
    /// The answer to the question before.
    old: Option<Effect>,
}

/// Its own state.
#[derive(Debug, Default)]
pub struct Interventions {
    asked: Option<Question>,
    /// Edits that were in force before each change, newest last.
    before: Vec<Vec<Intervention>>,
    /// Whether somebody was typing in the last pass: Esc is theirs.
    typing: bool,
}

/// Take an edit in: one at most for each read and source; pinning, swapping and levelling replace what was there.
fn with(edits: &[Intervention], new: Intervention) -> Vec<Intervention> {
    let same = |old: &Intervention| (old.site, old.stream) == (new.site, new.stream);
    let both_cut = |old: &Intervention| {
        let cut = |edit: &RouteEdit| matches!(edit, RouteEdit::Cut { .. });
        cut(&old.edit) && cut(&new.edit) && old.edit != new.edit
    };
    let mut list: Vec<Intervention> = edits
        .iter()
        .filter(|old| !same(old) || both_cut(old))
        .copied()
        .collect();
    list.push(new);
    list
}

fn read(sites: &[Site], at: (u32, usize)) -> Option<(&Site, &Stream)> {
    let site = sites.iter().find(|site| site.site == at.0)?;
    Some((site, site.streams.get(at.1)?))
}

/// `cut block 2 of layer 6 MLP, stream 1`
fn words(sites: &[Site], edit: &Intervention) -> String {
    let Some((site, stream)) = read(sites, (edit.site, edit.stream)) else {
        return format!("site {}, stream {}", edit.site, edit.stream);
    };
    let reader = read_words(site, edit.stream);
    let reader = reader.trim_end_matches(',');
    let name = |source: usize| {
        let name = stream.sources.get(source);
        name.map_or_else(|| format!("source {source}"), |name| source_words(name))
    };
    match edit.edit {
        RouteEdit::Cut { source } => format!("cut {} of {reader}", name(source)),
        RouteEdit::Pin { source } => format!("pin {reader} to {}", name(source)),
        RouteEdit::Swap { a, b } => format!("swap {} and {} of {reader}", name(a), name(b)),
        RouteEdit::Uniform => format!("level {reader}"),
    }
}

/// What a difference and its standard error allow to say. Only taking a route away tells whether it is needed.
fn verdict(edits: &[Intervention], difference: f64, error: f64) -> &'static str {
    let cut = |edit: &Intervention| matches!(edit.edit, RouteEdit::Cut { .. });
    let cuts = edits.iter().all(cut);
    if difference.abs() <= 2.0 * error || difference == 0.0 {
        return "within the noise of the batches";
    }
    match (difference > 0.0, cuts, edits.len()) {
        (true, true, 1) => "cutting it costs loss, above the noise",
        (true, true, _) => "cutting them costs loss, above the noise",
        (true, false, _) => "these edits raise the loss",
        (false, true, _) => "the model does better without",
        (false, false, _) => "these edits lower the loss",
    }
}

/// What a cut does to the other weights of its read.
fn cut_hint(heard: &Heard, read: &Stream) -> &'static str {
    let is = |key: &str, word: &str| {
        let values = heard.run.iter().flat_map(|run| &run.values);
        let mut values = values.filter(|(own, _)| own == key);
        values.any(|(_, value)| value.trim_matches('"') == word)
    };
    if is("residual.kind", "delta") && is("residual.mode", "centered") {
        "Take this source out of the softmax: its weight there becomes 0, before 1/n is subtracted"
    } else if read.floor.is_some() {
        "Take this source away; the others share its weight in proportion"
    } else {
        "Take this source away: its weight becomes 0, the others stay as they are"
    }
}

impl Interventions {
    /// Another run is loaded: what was tried on the one before cannot be undone in it.
    pub(super) fn forget(&mut self) {
        (self.asked, self.before) = (None, Vec::new());
    }

    /// Draw it.
    pub fn show(&mut self, ui: &mut Ui, heard: &Heard, view: &mut View, out: &mut Vec<Command>) {
        let known = frame(heard, view).map(|(frame, _)| frame.sites.as_slice());
        let Some(sites) = known.filter(|_| heard.run.is_some()) else {
            ui.weak("Interventions need a model: start or open a run first.");
            return;
        };
        let routed = sites.iter().any(|site| !site.streams.is_empty());
        if !routed {
            ui.weak("This mechanism has no depth weights, so there is no route to cut or pin.");
            return;
        }
        self.listen(heard, view);
        if self.escaped(ui) {
            self.undo(heard, view, out);
        }
        ui.horizontal_wrapped(|ui| self.actions(ui, heard, sites, view, out));
        if !view.edits.is_empty() {
            self.list(ui, heard, sites, view, out);
        }
        self.effect(ui, heard, view, out);
    }

    fn change(
        &mut self,
        heard: &Heard,
        view: &mut View,
        edits: Vec<Intervention>,
        out: &mut Vec<Command>,
    ) {
        if edits == view.edits {
            return;
        }
        self.before.push(std::mem::replace(&mut view.edits, edits));
        self.ask(heard, view, out);
    }

    fn ask(&mut self, heard: &Heard, view: &View, out: &mut Vec<Command>) {
        self.asked = Some(Question {
            log: heard.log.len(),
            old: heard.effect.clone(),
        });
        out.push(Command::Intervene {
            edits: view.edits.clone(),
        });
    }

    fn undo(&mut self, heard: &Heard, view: &mut View, out: &mut Vec<Command>) {
        if let Some(edits) = self.before.pop() {
            view.edits = edits;
            self.ask(heard, view, out);
        }
    }

    /// Esc, unless it ends the typing of a text.
    fn escaped(&mut self, ui: &Ui) -> bool {
        let was_typing = std::mem::replace(&mut self.typing, ui.ctx().text_edit_focused());
        let free = !was_typing && !self.typing && !self.before.is_empty();
        free && ui.input_mut(|input| input.consume_key(Modifiers::NONE, Key::Escape))
    }

    /// Is the question answered?
    fn listen(&mut self, heard: &Heard, view: &View) {
        let new = |question: &Question| {
            let effect = heard.effect.as_ref();
            effect.is_some_and(|effect| effect.edits == view.edits) && heard.effect != question.old
        };
        if self.asked.as_ref().is_some_and(new) {
            self.asked = None;
        }
    }

    /// Why the last question has no answer.
    fn failure<'a>(&self, heard: &'a Heard) -> Option<&'a str> {
        let since = self.asked.as_ref()?.log.min(heard.log.len());
        let errors = heard.log[since..].iter().rev();
        errors
            .filter(|entry| entry.level == Level::Error)
            .find_map(|entry| entry.text.strip_prefix("intervene: "))
    }

    /// Buttons for the selected read.
    fn actions(
        &mut self,
        ui: &mut Ui,
        heard: &Heard,
        sites: &[Site],
        view: &mut View,
        out: &mut Vec<Command>,
    ) {
        let selected = view.selected.and_then(|at| Some((at, read(sites, at)?)));
        let Some(((site, stream), (own, reads))) = selected else {
            ui.weak("Select a cell of the map to cut, pin or swap its route.");
            return;
        };
        let source = view.source.filter(|&source| source < reads.sources.len());
        let several = reads.sources.len() > 1;
        let reader = read_words(own, stream);
        let reader = reader.trim_end_matches(',');
        match source {
            Some(source) => {
                let name = source_words(&reads.sources[source]);
                ui.label(format!("{name}, read by {reader}:"));
            }
            None => {
                ui.label(format!("{reader}: select a source for more"));
            }
        }
        let edit = |edit| Intervention { site, stream, edit };
        let mut new = None;
        if let Some(source) = source {
            let button = |ui: &mut Ui, text: &str, hint: &str| {
                let response = ui.add_enabled(several, Button::new(text));
                let response = response.on_hover_text(hint);
                let why = "This read has one source only: there is nothing to change";
                response.on_disabled_hover_text(why).clicked()
            };
            if button(ui, "Cut", cut_hint(heard, reads)) {
                new = Some(edit(RouteEdit::Cut { source }));
            }
            if button(ui, "Pin", "Read this source only") {
                new = Some(edit(RouteEdit::Pin { source }));
            }
            ui.add_enabled_ui(several, |ui| {
                ui.menu_button("Swap with", |ui| {
                    for (other, name) in reads.sources.iter().enumerate() {
                        if other != source && ui.button(source_words(name)).clicked() {
                            new = Some(edit(RouteEdit::Swap {
                                a: source,
                                b: other,
                            }));
                            ui.close();
                        }
                    }
                });
            });
        }
        let hint = "Read all sources of this row at the same weight";
        let uniform = ui.add_enabled(several, Button::new("Make uniform"));
        if uniform.on_hover_text(hint).clicked() {
            new = Some(edit(RouteEdit::Uniform));
        }
        if let Some(new) = new {
            let edits = with(&view.edits, new);
            self.change(heard, view, edits, out);
        }
    }

    /// The edits in force, each with a button that takes it back.
    fn list(
        &mut self,
        ui: &mut Ui,
        heard: &Heard,
        sites: &[Site],
        view: &mut View,
        out: &mut Vec<Command>,
    ) {
        let mut remove = None;
        let (mut undo, mut clear) = (false, false);
        ScrollArea::vertical()
            .id_salt("edits")
            .max_height(52.0)
            .show(ui, |ui| {
                ui.horizontal_wrapped(|ui| {
                    undo = ui
                        .add(theme::small(ui, "Undo"))
                        .on_hover_text("Esc")
                        .clicked();
                    clear = ui.add(theme::small(ui, "Clear")).clicked();
                    for (at, edit) in view.edits.iter().enumerate() {
                        let words = words(sites, edit);
                        let button = ui.add(theme::small(ui, format!("{words}  ×")));
                        let button = button.on_hover_text("Take this edit back");
                        if button.clicked() {
                            remove = Some(at);
                        }
                    }
                });
            });
        if let Some(at) = remove {
            let mut edits = view.edits.clone();
            edits.remove(at);
            self.change(heard, view, edits, out);
        } else if clear {
            self.change(heard, view, Vec::new(), out);
        } else if undo {
            self.undo(heard, view, out);
        }
    }

    /// What the edits do, and at which step that was.
    fn effect(&mut self, ui: &mut Ui, heard: &Heard, view: &View, out: &mut Vec<Command>) {
        if let Some(message) = self.failure(heard).map(str::to_owned) {
            ui.colored_label(ui.visuals().error_fg_color, message);
            if ui.button("Try again").clicked() {
                self.ask(heard, view, out);
            }
            return;
        }
        let effect = heard.effect.as_ref().filter(|e| e.edits == view.edits);
        if view.edits.is_empty() {
            return;
        }
        let Some(effect) = effect else {
            if self.asked.is_some() {
                ui.weak("Measuring on held-out batches ..");
            } else if ui.button("Measure").clicked() {
                self.ask(heard, view, out);
            }
            return;
        };
        let difference = effect.edited - effect.clean;
        let sign = if difference < 0.0 { "−" } else { "+" };
        ui.horizontal_wrapped(|ui| {
            ui.label(format!(
                "Held-out loss {:.4} nats, edited {:.4}:",
                effect.clean, effect.edited
            ));
            let amount = format!("{sign}{:.4}", difference.abs());
            if effect.error.is_finite() {
                let percent = 100.0 * difference / effect.clean;
                let text = format!("{amount} ± {:.4} ({percent:+.1} %)", effect.error);
                ui.strong(text).on_hover_text(format!(
                    "Difference and its standard error over {} batches; in brackets the difference as a share of the loss without edits",
                    effect.batches
                ));
                bar(ui, effect);
                ui.label(verdict(&effect.edits, difference, effect.error));
            } else {
                ui.strong(amount);
                ui.label("one held-out batch only: its noise is unknown");
            }
        });
        ui.horizontal_wrapped(|ui| {
            let step = grouped(effect.step);
            if effect.step < heard.step {
                let now = grouped(heard.step);
                ui.label(format!("measured at step {step}; the model is at {now}"));
                let free = self.asked.is_none();
                let running = *heard.state() == RunState::Running;
                if running {
                    let pause = ui.add_enabled(free, Button::new("Pause and measure"));
                    let pause = pause.on_hover_text(
                        "The model stays as it is while you try other edits. Resume goes on to the same bits.",
                    );
                    if pause.clicked() {
                        out.push(Command::Pause);
                        self.ask(heard, view, out);
                    }
                }
                let again = ui.add_enabled(free, Button::new("Measure again"));
                if again.clicked() {
                    self.ask(heard, view, out);
                }
            } else {
                let words = RichText::new(format!("at step {step}")).weak();
                ui.add(Label::new(words).extend());
            }
            if matches!(view.moment, Moment::At(_)) {
                ui.strong("measured on the newest model, not on the map that is shown");
            }
        });
    }
}

/// The difference as a bar from zero, with two standard errors to each side.
fn bar(ui: &mut Ui, effect: &Effect) {
    let difference = effect.edited - effect.clean;
    let (rect, response) = ui.allocate_exact_size(vec2(96.0, 14.0), Sense::hover());
    let words = format!(
        "loss difference {difference:.4} nats, two standard errors {:.4}",
        2.0 * effect.error
    );
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &words));
    if !(difference.is_finite() && effect.error.is_finite()) {
        return;
    }
    let least = (difference - 2.0 * effect.error).min(0.0);
    let most = (difference + 2.0 * effect.error).max(0.0);
    let range = (most - least).max(f64::MIN_POSITIVE);
    let x = |value: f64| {
        let at = ((value - least) / range) as f32;
        rect.left() + 2.0 + at * (rect.width() - 4.0)
    };
    let painter = ui.painter();
    let quiet = ui.visuals().weak_text_color();
    let (from, to) = (x(difference.min(0.0)), x(difference.max(0.0)));
    let middle = rect.center().y;
    let fill = Rect::from_min_max(pos2(from, middle - 4.0), pos2(to, middle + 4.0));
    // Worse is orange, better is blue: as the signed scale of the map.
    let colour = if difference > 0.0 {
        Color32::from_rgb(0xe0, 0x82, 0x2a)
    } else {
        Color32::from_rgb(0x2f, 0x8f, 0xd1)
    };
    painter.rect_filled(fill, 0.0, colour);
    painter.vline(x(0.0), rect.y_range(), Stroke::new(1.0, quiet));
    let ink = Stroke::new(1.5, ui.visuals().strong_text_color());
    let (low, high) = (
        x(difference - 2.0 * effect.error),
        x(difference + 2.0 * effect.error),
    );
    painter.hline(low..=high, middle, ink);
    for end in [low, high] {
        painter.vline(end, middle - 3.0..=middle + 3.0, ink);
    }
    response.on_hover_text(format!("{words}; the line at zero is no effect"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(site: u32, edit: RouteEdit) -> Intervention {
        Intervention {
            site,
            stream: 0,
            edit,
        }
    }

    #[test]
    fn cuts_add_up_and_a_pin_replaces_them() {
        let cuts = with(&[], edit(3, RouteEdit::Cut { source: 0 }));
        let cuts = with(&cuts, edit(3, RouteEdit::Cut { source: 2 }));
        assert_eq!(cuts.len(), 2);
        assert_eq!(with(&cuts, edit(3, RouteEdit::Cut { source: 2 })).len(), 2);
        let pinned = with(&cuts, edit(3, RouteEdit::Pin { source: 1 }));
        assert_eq!(pinned, [edit(3, RouteEdit::Pin { source: 1 })]);
        assert_eq!(with(&pinned, edit(4, RouteEdit::Uniform)).len(), 2);
    }

    #[test]
    fn small_differences_are_noise() {
        let cut = [edit(3, RouteEdit::Cut { source: 0 })];
        let said = |difference| verdict(&cut, difference, 0.02);
        assert_eq!(said(0.01), "within the noise of the batches");
        assert_eq!(said(0.5), "cutting it costs loss, above the noise");
        assert_eq!(said(-0.5), "the model does better without");
    }

    #[test]
    fn only_a_cut_tells_whether_a_route_is_needed() {
        let both = [
            edit(3, RouteEdit::Cut { source: 0 }),
            edit(4, RouteEdit::Uniform),
        ];
        assert_eq!(verdict(&both, 0.5, 0.02), "these edits raise the loss");
        assert_eq!(
            verdict(&both[1..], -0.5, 0.02),
            "these edits lower the loss"
        );
    }
}
