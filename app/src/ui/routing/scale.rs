//! From a number to a colour, and back to numbers beside the colours.

use egui::Color32;

/// Points of a colour scale that grows lighter evenly and can be told apart by colour-blind eyes: dark violet to yellow.
const SEQUENTIAL: [[f32; 3]; 9] = [
    [68.0, 1.0, 84.0],
    [71.0, 44.0, 122.0],
    [59.0, 81.0, 139.0],
    [44.0, 113.0, 142.0],
    [33.0, 144.0, 141.0],
    [39.0, 173.0, 129.0],
    [92.0, 200.0, 99.0],
    [170.0, 220.0, 50.0],
    [253.0, 231.0, 37.0],
];

/// Signed values: blue, the background's neighbour, orange. Blue and orange differ for every common colour blindness.
const NEGATIVE: [[f32; 3]; 2] = [[103.0, 169.0, 207.0], [33.0, 102.0, 172.0]];
const POSITIVE: [[f32; 3]; 2] = [[244.0, 165.0, 96.0], [196.0, 84.0, 14.0]];
const MIDDLE_DARK: [f32; 3] = [58.0, 58.0, 62.0];
const MIDDLE_LIGHT: [f32; 3] = [236.0, 236.0, 236.0];
/// On a dark ground the ends are the light ones.
const NEGATIVE_DARK: [[f32; 3]; 2] = [[48.0, 108.0, 168.0], [128.0, 196.0, 240.0]];
const POSITIVE_DARK: [[f32; 3]; 2] = [[176.0, 92.0, 32.0], [255.0, 190.0, 110.0]];

/// Share of the largest value below which a symmetric-log scale is linear.
const LINEAR_SHARE: f64 = 0.05;

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and 255"
)]
fn blend(points: &[[f32; 3]], at: f32) -> Color32 {
    let at = at.clamp(0.0, 1.0) * (points.len() - 1) as f32;
    let low = (at as usize).min(points.len().saturating_sub(2));
    let part = at - low as f32;
    let [r, g, b] = std::array::from_fn(|c| {
        (points[low][c] + part * (points[low + 1][c] - points[low][c])).round() as u8
    });
    Color32::from_rgb(r, g, b)
}

/// Which values the colours of weights stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Range {
    /// 0 to 1: a weight may have any of them.
    #[default]
    Unit,
    /// 0 to 0.7, as in the pictures of the Delta Block paper's authors.
    Authors,
    /// 0 to the largest value, rounded up.
    Auto,
}

impl Range {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [Self::Unit, Self::Authors, Self::Auto];

    /// What the button says.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Unit => "0 – 1",
            Self::Authors => "0 – 0.7",
            Self::Auto => "automatic",
        }
    }
}

/// A colour scale with its limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// Weights from 0 to `most`.
    Sequential {
        /// The value of the lightest colour.
        most: f64,
    },
    /// Signed values from `-most` to `most`.
    Diverging {
        /// The value of the strongest colours.
        most: f64,
        /// Logarithmic away from zero.
        log: bool,
    },
}

/// The next of 1, 2, 5, 10, .. times a power of ten that is not below `value`: steady while `value` moves a little.
pub(super) fn round_up(value: f64) -> f64 {
    if !(value.is_finite() && value > 0.0) {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].into_iter();
    steps
        .map(|step| step * power)
        .find(|round| *round >= value * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

impl Scale {
    /// The scale of these values: shares of one as the person wants them, other positive ones up to the largest, signed
    /// ones on the symmetric-log scale.
    pub(super) fn of(values: impl Iterator<Item = f64>, range: Range) -> Self {
        let (mut least, mut most) = (0.0f64, 0.0f64);
        for value in values.filter(|value| value.is_finite()) {
            (least, most) = (least.min(value), most.max(value));
        }
        if least < -1e-6 {
            return Self::Diverging {
                most: round_up(most.max(-least)),
                log: true,
            };
        }
        if most > 1.0 + 1e-3 {
            let most = round_up(most);
            return Self::Sequential { most };
        }
        Self::Sequential {
            most: match range {
                Range::Unit => 1.0,
                Range::Authors => 0.7,
                Range::Auto => round_up(most),
            },
        }
    }

    /// The scale of differences.
    pub(super) fn difference(values: impl Iterator<Item = f64>) -> Self {
        let most = values.filter(|v| v.is_finite()).map(f64::abs);
        Self::Diverging {
            most: round_up(most.fold(0.0, f64::max).max(0.05)),
            log: false,
        }
    }

    /// Whether the values are shares, better written in percent.
    pub(super) fn shares(self) -> bool {
        matches!(self, Self::Sequential { most } if most <= 1.0)
    }

    /// Where a value lies, 0 to 1; values beyond the limits lie at the limits.
    pub(super) fn position(self, value: f64) -> f32 {
        let at = match self {
            Self::Sequential { most } => value / most,
            Self::Diverging { most, log: false } => 0.5 + 0.5 * value / most,
            Self::Diverging { most, log: true } => {
                let linear = LINEAR_SHARE * most;
                let bend = |v: f64| v.signum() * (1.0 + v.abs() / linear).ln();
                0.5 + 0.5 * bend(value) / bend(most)
            }
        };
        at.clamp(0.0, 1.0) as f32
    }

    /// The colour at a position from 0 to 1.
    pub(super) fn colour_at(self, at: f32, dark: bool) -> Color32 {
        match self {
            Self::Sequential { .. } => blend(&SEQUENTIAL, at),
            Self::Diverging { .. } => {
                let (middle, negative, positive) = if dark {
                    (MIDDLE_DARK, NEGATIVE_DARK, POSITIVE_DARK)
                } else {
                    (MIDDLE_LIGHT, NEGATIVE, POSITIVE)
                };
                let [near, far] = if at < 0.5 { negative } else { positive };
                blend(&[middle, near, far], (2.0 * at - 1.0).abs())
            }
        }
    }

    /// The colour of a value.
    pub(super) fn colour(self, value: f64, dark: bool) -> Color32 {
        self.colour_at(self.position(value), dark)
    }

    /// Values that stand beside the legend, with what they are called.
    pub(super) fn ticks(self) -> Vec<(f64, String)> {
        let values = match self {
            Self::Sequential { most } => vec![0.0, 0.5 * most, most],
            Self::Diverging { most, log: false } => vec![-most, 0.0, most],
            Self::Diverging { most, log: true } => {
                vec![-most, -0.1 * most, 0.0, 0.1 * most, most]
            }
        };
        values
            .into_iter()
            .map(|value| (value, tick(value)))
            .collect()
    }
}

/// `0`, `0.35`, `−2`
pub(super) fn tick(value: f64) -> String {
    let text = format!("{:.3}", value.abs());
    let text = text.trim_end_matches('0').trim_end_matches('.');
    let sign = if value < 0.0 { "−" } else { "" };
    format!("{sign}{text}")
}

/// Black or white, whichever is easier to read on `ground`.
pub(super) fn ink(ground: Color32) -> Color32 {
    let [r, g, b, _] = ground.to_array().map(f32::from);
    if 0.299 * r + 0.587 * g + 0.114 * b > 128.0 {
        Color32::from_gray(16)
    } else {
        Color32::from_gray(240)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lightness(colour: Color32) -> f32 {
        let [r, g, b, _] = colour.to_array().map(f32::from);
        0.299 * r + 0.587 * g + 0.114 * b
    }

    #[test]
    fn more_weight_is_lighter() {
        let scale = Scale::Sequential { most: 1.0 };
        let shades: Vec<f32> = (0..=50)
            .map(|i| lightness(scale.colour(f64::from(i) / 50.0, true)))
            .collect();
        assert!(shades.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn zero_is_in_the_middle_of_signed_scales() {
        for log in [false, true] {
            let scale = Scale::Diverging { most: 2.0, log };
            assert!((scale.position(0.0) - 0.5).abs() < 1e-6);
            assert!((scale.position(2.0) - 1.0).abs() < 1e-6);
            assert!((scale.position(0.3) + scale.position(-0.3) - 1.0).abs() < 1e-6);
        }
        // The logarithm shows small values.
        let at = |log| Scale::Diverging { most: 2.0, log }.position(0.05);
        assert!(at(true) > at(false) + 0.05);
    }

    #[test]
    fn the_range_follows_the_values() {
        let scale = |values: &[f64], range| Scale::of(values.iter().copied(), range);
        assert_eq!(
            scale(&[0.1, 0.31], Range::Auto),
            Scale::Sequential { most: 0.5 }
        );
        assert_eq!(
            scale(&[0.1, 0.31], Range::Authors),
            Scale::Sequential { most: 0.7 }
        );
        let signed = Scale::Diverging {
            most: 2.0,
            log: true,
        };
        assert_eq!(scale(&[-0.2, 1.3], Range::Unit), signed);
        let factors = scale(&[0.9, 1.1], Range::Unit);
        assert_eq!(factors, Scale::Sequential { most: 2.0 });
        assert!(!factors.shares() && Scale::Sequential { most: 0.7 }.shares());
        assert_eq!(
            scale(&[f64::NAN], Range::Auto),
            Scale::Sequential { most: 1.0 }
        );
    }

    #[test]
    fn limits_are_round() {
        let cases = [(0.31, 0.5), (0.5, 0.5), (1.2, 2.0), (7.0, 10.0), (0.0, 1.0)];
        for (value, round) in cases {
            assert!((round_up(value) - round).abs() < 1e-12, "{value}");
        }
    }

    #[test]
    fn ticks_have_few_digits() {
        let texts = |scale: Scale| -> Vec<String> {
            scale.ticks().into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(texts(Scale::Sequential { most: 0.7 }), ["0", "0.35", "0.7"]);
        let signed = Scale::Diverging {
            most: 2.0,
            log: true,
        };
        assert_eq!(texts(signed), ["−2", "−0.2", "0", "0.2", "2"]);
    }
}
