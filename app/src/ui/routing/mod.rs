//! Panel: the map of depth weights, and the other views of the same frame.

mod empty;
mod export;
mod gates;
mod grid;
mod heat;
mod history;
mod map;
mod norms;
mod plots;
mod scale;
mod sharpness;
mod shown;
mod signed;
mod table;
mod tokens;
mod unfolded;
mod weights;
mod words;

use egui::containers::menu::MenuButton;
use egui::{Button, Color32, Layout, RichText, TextStyle, Ui, vec2};

pub(super) use plots::line_colour;
use shown::Shown;
pub(super) use shown::{frame, nearest};
pub(super) use words::read_words;

use super::format::grouped;
use super::heard::Heard;
use super::theme;
use super::view::{Moment, View};
use crate::protocol::{Command, Frame};

/// A view of the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Tab {
    #[default]
    Map,
    History,
    Tokens,
    Gates,
    Sharpness,
    Norms,
    Unfolded,
}

impl Tab {
    /// With what each is called, and what it shows.
    const ALL: [(Self, &'static str, &'static str); 7] = [
        (
            Self::Map,
            "Map",
            "Which site reads how much of which source",
        ),
        (
            Self::History,
            "History",
            "The selected read over the training",
        ),
        (
            Self::Tokens,
            "Tokens",
            "The selected read, token by token, on a text",
        ),
        (
            Self::Gates,
            "Gates",
            "Read and write gates, and how streams are mixed",
        ),
        (
            Self::Sharpness,
            "Sharpness",
            "Largest weight and entropy of each read",
        ),
        (
            Self::Norms,
            "Norms",
            "Size of what each sublayer reads and gives",
        ),
        (
            Self::Unfolded,
            "Unfolded",
            "Every mechanism as one matrix of coefficients",
        ),
    ];
}

/// Its own state.
#[derive(Debug, Default)]
pub struct Routing {
    tab: Tab,
    weights: weights::Weights,
    tokens: tokens::Tokens,
}

impl Routing {
    /// Whether the map is shown, to which interventions belong.
    pub fn is_map(&self) -> bool {
        self.tab == Tab::Map
    }

    /// Draw it.
    pub fn show(&mut self, ui: &mut Ui, heard: &Heard, view: &mut View, out: &mut Vec<Command>) {
        let head = vec2(ui.available_width(), ui.spacing().interact_size.y);
        let align = theme::middle(ui);
        let from_right = Layout::right_to_left(align);
        ui.allocate_ui_with_layout(head, from_right, |ui| {
            self.caption(ui, heard, view);
            ui.with_layout(Layout::left_to_right(align), |ui| self.tabs(ui));
        });
        ui.separator();
        match self.tab {
            Tab::Map => self.weights.show(ui, heard, view),
            Tab::History => history::show(ui, heard, view),
            Tab::Tokens => self.tokens.show(ui, heard, view, out),
            Tab::Gates => gates::show(ui, heard, view),
            Tab::Sharpness => sharpness::show(ui, heard, view),
            Tab::Norms => norms::show(ui, heard, view),
            Tab::Unfolded => unfolded::show(ui, heard, view),
        }
    }

    /// The tabs that have room on one line; the others in a menu at its end.
    fn tabs(&mut self, ui: &mut Ui) {
        const MORE: &str = "more …";
        let space = ui.spacing();
        let around = 2.0 * space.button_padding.x + space.item_spacing.x;
        let font = TextStyle::Button.resolve(ui.style());
        let width = |name: &str| {
            let painter = ui.painter();
            let galley = painter.layout_no_wrap(name.into(), font.clone(), Color32::WHITE);
            galley.size().x + around
        };
        let widths = Tab::ALL.map(|(_, name, _)| width(name));
        let room = ui.available_width() + ui.spacing().item_spacing.x;
        let mut fit = Tab::ALL.len();
        if widths.iter().sum::<f32>() > room {
            // The menu is called like the tab that it holds, while that one is shown.
            let longest = widths.iter().copied().fold(width(MORE), f32::max);
            while fit > 0 && widths[..fit].iter().sum::<f32>() + longest + width(" …") > room {
                fit -= 1;
            }
        }
        let (first, rest) = Tab::ALL.split_at(fit);
        for &(tab, name, hint) in first {
            ui.selectable_value(&mut self.tab, tab, name)
                .on_hover_text(hint);
        }
        if rest.is_empty() {
            return;
        }
        let own = rest.iter().find(|(tab, ..)| *tab == self.tab);
        let name = own.map_or_else(|| MORE.to_owned(), |(_, name, _)| format!("{name} …"));
        let button = Button::selectable(own.is_some(), name);
        let (menu, _) = MenuButton::from_button(button).ui(ui, |ui| {
            for &(tab, name, hint) in rest {
                let choice = ui.selectable_value(&mut self.tab, tab, name);
                if choice.on_hover_text(hint).clicked() {
                    ui.close();
                }
            }
        });
        menu.accessible_name("more views");
    }

    /// Which step of which run is shown; loud if it is not the newest.
    fn caption(&self, ui: &mut Ui, heard: &Heard, view: &View) {
        let shape = self.tab == Tab::Map && !matches!(Shown::of(heard, view), Shown::Frame(_));
        match frame(heard, view).filter(|_| !shape) {
            Some(shown) => moment(ui, heard, view, shown),
            None => {
                ui.weak("not trained yet");
            }
        }
    }
}

fn moment(ui: &mut Ui, heard: &Heard, view: &View, (frame, at): (&Frame, usize)) {
    let step = grouped(frame.step);
    let looked_at = heard.looking && matches!(view.moment, Moment::Live);
    if let (None, Some(closed)) = (&heard.run, heard.closed.as_ref().filter(|_| !looked_at)) {
        let text = RichText::new(format!("closed run {}, step {step}", closed.name)).strong();
        ui.label(text).on_hover_text(if closed.folder.is_empty() {
            "It is no longer loaded".to_owned()
        } else {
            format!("It is no longer loaded; it is kept in {}", closed.folder)
        });
        return;
    }
    if matches!(view.moment, Moment::Live) || at + 1 == heard.frames().len() {
        ui.label(format!("step {step}"))
            .on_hover_text("The newest routing frame");
    } else {
        let text = RichText::new(format!("step {step}, not live")).strong();
        ui.label(text)
            .on_hover_text("An older frame, chosen in the scrubber");
    }
}
