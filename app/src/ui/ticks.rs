//! Round numbers for axes: where they begin and end, what is marked, how it is written.

use super::format;
use super::view::Axis;

/// The smallest of 1, 2, 5, 10, 20, .. times `unit` that is not less than `least`.
fn round_step(least: f64, unit: f64) -> f64 {
    let least = (least / unit).max(f64::MIN_POSITIVE);
    let decade = 10_f64.powf(least.log10().floor());
    let factors = [1.0, 2.0, 5.0];
    // A hair of tolerance: 0.2 / 0.1 is not exactly 2.
    let found = factors
        .into_iter()
        .find(|f| f * decade >= least * (1.0 - 1e-9));
    unit * decade * found.unwrap_or(10.0)
}

/// At most about `count` marks between two values, in steps of 1, 2 or 5 times a power of ten and `unit`; and the step.
#[must_use]
pub(super) fn linear((from, to): (f64, f64), count: usize, unit: f64) -> (Vec<f64>, f64) {
    let step = round_step((to - from) / count.max(1) as f64, unit);
    let (first, last) = (
        (from / step).ceil() as i64,
        (to / step + 1e-9).floor() as i64,
    );
    // Bounds are finite and the step fits them; the cap is for values that do not.
    let marks = (first..=last).take(2 * count + 2);
    (marks.map(|index| index as f64 * step).collect(), step)
}

/// Marks on a logarithmic axis, as powers: powers of ten, with 2 and 5 between them where there is room.
#[must_use]
pub(super) fn logarithmic((from, to): (f64, f64), count: usize) -> Vec<f64> {
    let decades = to - from;
    let between: &[f64] = match decades {
        d if 3.0 * d <= count as f64 => &[1.0, 2.0, 5.0],
        d if 2.0 * d <= count as f64 => &[1.0, 3.0],
        _ => &[1.0],
    };
    let stride = (decades / count.max(1) as f64).ceil().max(1.0) as i32;
    let powers = (from.floor() as i32..=to.ceil() as i32).filter(|power| power % stride == 0);
    let marks = powers.flat_map(|power| between.iter().map(move |f| f64::from(power) + f.log10()));
    let marks = marks.filter(|mark| (from - 1e-9..=to + 1e-9).contains(mark));
    let marks: Vec<f64> = marks.take(64).collect();
    // Less than a decade: round numbers of the values themselves.
    if marks.len() < 2 && decades > 0.0 {
        let (values, _) = linear((10_f64.powf(from), 10_f64.powf(to)), count, 1.0);
        return values
            .into_iter()
            .filter(|v| *v > 0.0)
            .map(f64::log10)
            .collect();
    }
    marks
}

/// Ends of a vertical axis that hold these values, on round numbers, so that they move seldom.
#[must_use]
pub(super) fn ends(low: f64, high: f64, zero: bool) -> (f64, f64) {
    let low = if zero { low.min(0.0) } else { low };
    let spread = (high - low)
        .max(high.abs().max(low.abs()) * 1e-3)
        .max(1e-12);
    let step = round_step(spread / 5.0, 1.0);
    let from = (low / step).floor() * step;
    let to = (high / step).ceil() * step;
    (from, if to > from { to } else { from + step })
}

/// The same for powers of ten: on tenths of a decade.
#[must_use]
pub(super) fn log_ends(low: f64, high: f64) -> (f64, f64) {
    let from = (low.log10() * 5.0).floor() / 5.0;
    let to = (high.log10() * 5.0).ceil() / 5.0;
    (from, if to > from { to } else { from + 0.2 })
}

/// The end of a horizontal axis that holds `last`: it moves in steps of a tenth to a quarter.
#[must_use]
pub(super) fn far_end(last: f64) -> f64 {
    if last <= 0.0 || !last.is_finite() {
        return 1.0;
    }
    let decade = 10_f64.powf(last.log10().floor());
    let steps = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0];
    let found = steps
        .into_iter()
        .find(|step| step * decade >= last * (1.0 - 1e-9));
    decade * found.unwrap_or(10.0)
}

/// Seconds of the unit in which a time up to `most` is marked, and its name.
#[must_use]
pub(super) fn time_unit(most: f64) -> (f64, &'static str) {
    match most {
        t if t >= 7200.0 => (3600.0, "h"),
        t if t >= 180.0 => (60.0, "min"),
        _ => (1.0, "s"),
    }
}

/// A mark with as many digits as tell it from the next one, which is `step` away.
#[must_use]
pub(super) fn mark(value: f64, step: f64) -> String {
    let (size, step) = (value.abs(), step.abs());
    if size < 1e-6 * step {
        return "0".into();
    }
    let (scale, unit) = match size {
        s if s >= 1e9 => (1e9, " G"),
        s if s >= 1e6 => (1e6, " M"),
        s if s >= 1e4 => (1e3, " k"),
        s if s > 0.0 && s.max(step) < 5e-3 => {
            let text = format!("{value:.1e}");
            return text.replace(".0e", "e");
        }
        _ => (1.0, ""),
    };
    let digits = (-(step / scale).log10() - 1e-9).ceil().clamp(0.0, 4.0) as usize;
    format!("{:.digits$}{unit}", value / scale)
}

/// A value that was read, with three digits.
#[must_use]
pub(super) fn figure(value: f64) -> String {
    match value.abs() {
        v if !v.is_finite() => "—".into(),
        0.0 => "0".into(),
        v if v >= 995.0 => format::short(value),
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.9995 => format!("{value:.2}"),
        v if v >= 0.009_95 => format!("{value:.3}"),
        v if v >= 0.000_995 => format!("{value:.4}"),
        _ => format!("{value:.1e}"),
    }
}

/// A place on the horizontal axis: `step 1,240`, `3.2 M tokens`, `1.5 min`.
#[must_use]
pub(super) fn place(axis: Axis, x: f64) -> String {
    match axis {
        Axis::Step => format!("step {}", format::grouped(x.max(0.0).round() as u64)),
        Axis::Tokens => format!("{} tokens", format::short(x)),
        Axis::Time => {
            let (unit, name) = time_unit(x);
            format!("{:.1} {name}", x / unit)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round() {
        assert_eq!(
            linear((0.0, 200.0), 4, 1.0),
            (vec![0.0, 50.0, 100.0, 150.0, 200.0], 50.0)
        );
        let (marks, step) = linear((0.0, 1.0), 5, 1.0);
        assert_eq!((marks.len(), step), (6, 0.2));
        assert_eq!(linear((0.0, 600.0), 4, 60.0).1, 300.0);
        let marks = |from, to, count| -> Vec<String> {
            let marks = logarithmic((from, to), count).into_iter();
            marks.map(|m| figure(10_f64.powf(m))).collect()
        };
        assert_eq!(marks(-2.0, 1.0, 4), ["0.010", "0.100", "1.00", "10.0"]);
        assert_eq!(marks(0.0, 1.0, 4), ["1.00", "2.00", "5.00", "10.0"]);
        assert_eq!(marks(0.31, 0.5, 3), ["2.50", "3.00"]);
    }

    #[test]
    fn axes_end_on_round_numbers_that_hold_the_values() {
        assert_eq!(ends(0.057, 3.46, false), (0.0, 4.0));
        let (from, to) = ends(2.51, 2.58, false);
        assert!(
            from <= 2.51 && to >= 2.58 && to - from < 0.12,
            "{from} {to}"
        );
        assert_eq!(ends(5.0, 9.0, true).0, 0.0);
        let (from, to) = ends(7.0, 7.0, false);
        assert!(from <= 7.0 && to > from);
        assert_eq!(ends(0.0, 0.0, true).0, 0.0);
        for last in [1.0, 7.0, 199.0, 200.0, 1234.0, 5e6] {
            assert!(
                far_end(last) >= last && far_end(last) <= 1.34 * last.max(1.0),
                "{last}"
            );
        }
    }

    #[test]
    fn numbers_have_few_digits() {
        let read = [
            0.057_81,
            1.884,
            16_350.0,
            1e-4,
            0.001,
            7.26,
            153_600.0,
            f64::NAN,
        ]
        .map(figure);
        assert_eq!(
            read,
            [
                "0.058", "1.88", "16 k", "1.0e-4", "0.0010", "7.26", "154 k", "—"
            ]
        );
        let marks = [
            mark(0.5, 0.5),
            mark(2.0, 0.5),
            mark(15_000.0, 5000.0),
            mark(5e-4, 5e-4),
            mark(0.0, 5e-4),
        ];
        assert_eq!(marks, ["0.5", "2.0", "15 k", "5e-4", "0"]);
        assert_eq!(place(Axis::Step, 1240.2), "step 1,240");
        assert_eq!(place(Axis::Time, 90.0), "90.0 s");
    }
}
