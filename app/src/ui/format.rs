//! Numbers for people: few digits, always a unit.

/// `1,240`
#[must_use]
pub(super) fn grouped(number: u64) -> String {
    crate::report::grouped(number)
}

/// `61 %`
#[must_use]
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// `41 k`, `3.2 M`, `870`
#[must_use]
pub(super) fn short(number: f64) -> String {
    match number.abs() {
        n if !n.is_finite() => "—".into(),
        n if n >= 9.95e8 => format!("{:.1} G", number / 1e9),
        n if n >= 9.95e5 => format!("{:.1} M", number / 1e6),
        n if n >= 9.95e3 => format!("{:.0} k", number / 1e3),
        n if n >= 995.0 => format!("{:.1} k", number / 1e3),
        _ => format!("{number:.0}"),
    }
}

/// `12.3 MB`
#[must_use]
pub(super) fn bytes(number: u64) -> String {
    let number = number as f64;
    match number {
        n if n >= 1e9 => format!("{:.1} GB", n / 1e9),
        n if n >= 1e6 => format!("{:.1} MB", n / 1e6),
        n if n >= 1e3 => format!("{:.0} kB", n / 1e3),
        n => format!("{n:.0} B"),
    }
}

/// `just now`, `5 min ago`, `3 h ago`, `12 days ago`
#[must_use]
pub(super) fn age(seconds: u64) -> String {
    match seconds {
        0..60 => "just now".into(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}
