//! Colours of curves that are told apart with any colour vision, in dark and in light.

use egui::Color32;

/// After Okabe & Ito, "Color Universal Design" (2008); blue and yellow are moved for contrast with the ground.
const ON_DARK: [Color32; 7] = [
    Color32::from_rgb(0x56, 0xb4, 0xe9),
    Color32::from_rgb(0xe6, 0x9f, 0x00),
    Color32::from_rgb(0x1f, 0xb8, 0x8a),
    Color32::from_rgb(0xe0, 0x8f, 0xc0),
    Color32::from_rgb(0xf0, 0xe4, 0x42),
    Color32::from_rgb(0xf0, 0x70, 0x30),
    Color32::from_rgb(0xc8, 0xc8, 0xc8),
];

/// The same for light grounds.
const ON_LIGHT: [Color32; 7] = [
    Color32::from_rgb(0x00, 0x72, 0xb2),
    Color32::from_rgb(0xc7, 0x7f, 0x00),
    Color32::from_rgb(0x00, 0x8a, 0x66),
    Color32::from_rgb(0xb8, 0x5c, 0x95),
    Color32::from_rgb(0x8f, 0x84, 0x00),
    Color32::from_rgb(0xd5, 0x5e, 0x00),
    Color32::from_rgb(0x50, 0x50, 0x50),
];

/// How many there are before they repeat.
pub(super) const COLOURS: usize = ON_DARK.len();

/// The colour with this number; they repeat.
#[must_use]
pub(super) fn colour(number: usize, dark: bool) -> Color32 {
    let colours = if dark { &ON_DARK } else { &ON_LIGHT };
    colours[number % colours.len()]
}

/// Ground of a token that had this probability: the less likely, the stronger. One hue, so that only lightness counts.
#[must_use]
pub(super) fn surprise(probability: f64, dark: bool) -> Color32 {
    let strength = (1.0 - probability.clamp(0.0, 1.0)) as f32;
    let hue = if dark {
        Color32::from_rgb(0xd0, 0x6a, 0x00)
    } else {
        Color32::from_rgb(0xff, 0x9a, 0x2e)
    };
    hue.gamma_multiply(0.85 * strength)
}
