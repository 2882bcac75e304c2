//! Colours and sizes. Colour is information: chrome is grey, one accent for the primary action, red only for errors.

use egui::style::ScrollAnimation;
use egui::{Color32, Context, Stroke, Theme, ThemePreference, Ui};

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

/// Set spacing and both themes. `calm`: nothing moves by itself.
pub(super) fn apply(context: &Context, calm: bool) {
    for theme in [Theme::Dark, Theme::Light] {
        context.style_mut_of(theme, |style| {
            if let Some(small) = style.text_styles.get_mut(&egui::TextStyle::Small) {
                small.size = 10.5;
            }
            style.spacing.item_spacing = egui::vec2(6.0, 4.0);
            style.spacing.button_padding = egui::vec2(6.0, 2.0);
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
