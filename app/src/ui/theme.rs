//! Colours and sizes. Colour is information: chrome is grey, one accent for the primary action, red only for errors.

use egui::{Color32, Context};

/// Set fonts, spacing and both themes.
pub fn apply(context: &Context) {
    context.all_styles_mut(|style| {
        style.spacing.item_spacing = egui::vec2(6.0, 4.0);
    });
}

/// The primary action.
pub const ACCENT: Color32 = Color32::from_rgb(0x2f, 0x7d, 0xd1);
