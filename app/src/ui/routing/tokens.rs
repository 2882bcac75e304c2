//! One read token by token on a text.

use egui::{Button, TextEdit, Ui, vec2};

use super::plots::{chosen, pick};
use super::scale::{Range, Scale};
use super::shown::frame;
use super::table::Table;
use super::{empty, grid, heat};
use crate::names::source_short;
use crate::protocol::{Command, Trace, TraceSite};
use crate::ui::format::grouped;
use crate::ui::heard::Heard;
use crate::ui::theme;
use crate::ui::view::View;

/// Its own state.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    text: String,
    /// The step of the answer when the question was asked; the question is open until another comes.
    asked: Option<Option<u64>>,
    /// Lines of the log when it was asked: a failure is an answer too.
    log: usize,
}

/// A token as it can be seen: blanks and line ends have signs.
fn visible(token: &str) -> String {
    let token: String = token
        .chars()
        .map(|c| match c {
            ' ' => '·',
            '\n' => '↵',
            '\t' => '→',
            c => c,
        })
        .collect();
    if token.is_empty() {
        "∅".into()
    } else {
        token
    }
}

fn site(trace: &Trace, read: (u32, usize)) -> Option<&TraceSite> {
    let same = |own: &&TraceSite| (own.site, own.stream) == read;
    trace.sites.iter().find(same)
}

impl Tokens {
    /// Draw it.
    pub(super) fn show(
        &mut self,
        ui: &mut Ui,
        heard: &Heard,
        view: &mut View,
        out: &mut Vec<Command>,
    ) {
        let Some((now, _)) = frame(heard, view).filter(|_| heard.run.is_some()) else {
            empty::say(
                ui,
                "No model to ask yet",
                "When a model is loaded, this shows what each token of a text makes a site read.",
            );
            return;
        };
        if grid::streams(&now.sites) == 0 {
            empty::say(
                ui,
                "This mechanism has no depth weights",
                "Every token reads the same sum, so there is nothing to tell apart.",
            );
            return;
        }
        let failed = heard.log.iter().skip(self.log);
        let failed = failed
            .rev()
            .find_map(|entry| entry.text.strip_prefix("trace: "));
        let answered = heard.trace.as_ref().map(|trace| trace.step);
        if self.asked.is_some_and(|before| before != answered) || failed.is_some() {
            self.asked = None;
        }
        ui.horizontal_wrapped(|ui| {
            pick(ui, &now.sites, view);
        });
        ui.horizontal(|ui| {
            let label = ui.weak("text");
            let width = (ui.available_width() - 80.0).max(80.0);
            let edit = TextEdit::singleline(&mut self.text)
                .align(theme::beginning(ui))
                .hint_text("empty: the first held-out sequence")
                .desired_width(width);
            let edit = ui.add(edit).labelled_by(label.id);
            let entered =
                edit.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
            if ui.add(Button::new("Trace")).clicked() || entered {
                self.asked = Some(answered);
                self.log = heard.log.len();
                out.push(Command::Trace {
                    text: self.text.clone(),
                });
            }
        });
        if let Some(message) = failed {
            ui.colored_label(ui.visuals().error_fg_color, message);
        }
        let Some(trace) = &heard.trace else {
            let sentence = if self.asked.is_some() {
                "The model is reading."
            } else {
                "Press Trace: the model reads the text, and each token shows its own weights."
            };
            empty::say(ui, "Nothing traced yet", sentence);
            return;
        };
        let mut line = format!("step {}", grouped(trace.step));
        if trace.step < heard.step {
            line.push_str(&format!(
                "; the model is at step {}: trace again for its weights now",
                grouped(heard.step)
            ));
        }
        ui.weak(line);
        let read = chosen(&now.sites, view);
        let Some(site) = read.and_then(|read| site(trace, read)) else {
            empty::say(
                ui,
                "Not traced",
                "This read is not among those of the trace.",
            );
            return;
        };
        let scale = Scale::of(site.weights.iter().flatten().copied(), Range::Unit);
        let rows: Vec<String> = trace.tokens.iter().map(|token| visible(token)).collect();
        let columns: Vec<String> = site.sources.iter().map(|name| source_short(name)).collect();
        let table = Table {
            name: "weights token by token",
            rows: &rows,
            tokens: true,
            columns: &columns,
            bottom_up: false,
            scale,
            strong: None,
        };
        let space = vec2(
            ui.available_width(),
            (ui.available_height() - 30.0).max(60.0),
        );
        table.show(ui, space, |row, column| {
            site.weights.get(row)?.get(column).copied()
        });
        heat::legend(ui, scale, "weight");
    }
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn blanks_can_be_seen() {
        assert_eq!(visible(" the\n"), "·the↵");
        assert_eq!(visible(""), "∅");
    }
}
