//! Colours and sizes. Colour is information: chrome is grey, one accent for the primary action, red only for errors.

use egui::style::ScrollAnimation;
use egui::{Align, Align2, Button, Color32, Context, Stroke, Style, Theme, ThemePreference, Ui};

use super::kept::Look;

/// Let the text font borrow arrows and the like from the monospace one. They are there from the next pass on.
pub(super) fn fonts(context: &Context) {
    let mut fonts = egui::FontDefinitions::default();
    if let Some(family) = fonts.families.get_mut(&egui::FontFamily::Proportional) {
        family.push("Hack".into());
    }
    context.set_fonts(fonts);
}

/// Dark or light.
pub(super) fn choose(context: &Context, look: Look) {
    context.set_theme(match look {
        Look::System => ThemePreference::System,
        Look::Dark => ThemePreference::Dark,
        Look::Light => ThemePreference::Light,
    });
}

/// Height of what a finger can hit, in points.
pub(super) const FINGER: f32 = 40.0;

/// Whether this is drawn for fingers.
pub(super) fn is_touch(ui: &Ui) -> bool {
    ui.spacing().interact_size.y >= FINGER
}

/// Where the text of a field lies.
pub(super) fn beginning(ui: &Ui) -> Align2 {
    Align2([Align::LEFT, middle(ui)])
}

/// Where a text lies in a line for fingers, which is higher than the text.
pub(super) fn middle(ui: &Ui) -> Align {
    if is_touch(ui) {
        Align::Center
    } else {
        Align::TOP
    }
}

/// A button that is as low as a line of text, where no finger has to hit it.
pub(super) fn small<'a>(ui: &Ui, text: impl egui::IntoAtoms<'a>) -> Button<'a> {
    let button = Button::new(text);
    if is_touch(ui) { button } else { button.small() }
}

/// Set spacing and both themes. `calm`: nothing moves by itself; `touch`: it is used with fingers.
pub(super) fn apply(context: &Context, calm: bool, touch: bool) {
    let usual = Style::default();
    for theme in [Theme::Dark, Theme::Light] {
        context.style_mut_of(theme, |style| {
            if let Some(small) = style.text_styles.get_mut(&egui::TextStyle::Small) {
                small.size = 10.5;
            }
            style.spacing.item_spacing = egui::vec2(6.0, 4.0);
            style.spacing.button_padding = egui::vec2(6.0, 2.0);
            style.spacing.interact_size = usual.spacing.interact_size;
            style.spacing.icon_width = usual.spacing.icon_width;
            style.interaction.tooltip_delay = usual.interaction.tooltip_delay;
            // A tap asks what a text means; it does not begin to mark it.
            style.interaction.selectable_labels = !touch;
            if touch {
                style.spacing.interact_size.y = FINGER;
                style.spacing.icon_width = 18.0;
                style.interaction.tooltip_delay = 0.2;
            }
            if calm {
                style.animation_time = 0.0;
                style.scroll_animation = ScrollAnimation::none();
            } else {
                style.animation_time = 0.1;
                style.scroll_animation = ScrollAnimation::default();
            }
            style.visuals.text_cursor.blink = !calm;
            let visuals = &mut style.visuals;
            let (text, error, warn) = match theme {
                Theme::Dark => (0xc8, [0xff, 0x7b, 0x6e], [0xf0, 0xb4, 0x4c]),
                Theme::Light => (0x30, [0xb3, 0x1d, 0x1d], [0x8a, 0x55, 0x00]),
            };
            visuals.widgets.noninteractive.fg_stroke = Stroke::new(1.0, Color32::from_gray(text));
            visuals.weak_text_alpha = 0.72;
            visuals.error_fg_color = Color32::from_rgb(error[0], error[1], error[2]);
            visuals.warn_fg_color = Color32::from_rgb(warn[0], warn[1], warn[2]);
            visuals.selection.bg_fill = match theme {
                Theme::Dark => Color32::from_rgb(0x1f, 0x55, 0x8f),
                Theme::Light => Color32::from_rgb(0xa9, 0xcd, 0xf3),
            };
        });
    }
}

/// The primary action.
pub(super) const ACCENT: Color32 = Color32::from_rgb(0x2f, 0x7d, 0xd1);

/// Parts of a whole, colour-blind safe on dark and light (Okabe and Ito).
pub(super) const PARTS: [Color32; 6] = [
    Color32::from_rgb(0x56, 0xb4, 0xe9),
    Color32::from_rgb(0xe6, 0x9f, 0x00),
    Color32::from_rgb(0x00, 0x9e, 0x73),
    Color32::from_rgb(0xcc, 0x79, 0xa7),
    Color32::from_rgb(0x99, 0x99, 0x99),
    Color32::from_rgb(0xd5, 0x5e, 0x00),
];

/// A quiet box with a coloured edge, for something that needs attention.
pub(super) fn notice(ui: &mut Ui, edge: Color32, contents: impl FnOnce(&mut Ui)) {
    let fill = ui.visuals().faint_bg_color;
    let frame = egui::Frame::new()
        .fill(fill)
        .inner_margin(6)
        .stroke(Stroke::new(1.0, edge));
    frame.corner_radius(4).show(ui, contents);
}
