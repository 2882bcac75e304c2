//! Names of new runs.

use std::path::{Path, PathBuf};

use crate::config::RunConfig;
use crate::files;

/// `runs/20260101-120000-dar-recall`, in universal time; a number is added while it exists.
#[must_use]
pub fn default_folder(config: &RunConfig, seconds: u64) -> PathBuf {
    free(Path::new(RUNS), &default_name(config, seconds))
}

/// `20260101-120000-dar-recall`
#[must_use]
pub fn default_name(config: &RunConfig, seconds: u64) -> String {
    let data = plain(&config.data_name());
    format!("{}-{}-{data}", timestamp(seconds), config.residual.kind())
}

/// The folder of runs that were given none.
pub const RUNS: &str = "runs";

/// A name without what file systems could take amiss.
#[must_use]
pub fn plain(name: &str) -> String {
    let keep = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let plain = name.chars().map(|c| if keep(c) { c } else { '_' });
    plain.collect()
}

/// A folder of this name that is not there yet: a number is added while it is.
#[must_use]
pub fn free(place: &Path, name: &str) -> PathBuf {
    let others = (2..).map(|number| place.join(format!("{name}-{number}")));
    std::iter::once(place.join(name))
        .chain(others)
        .find(|path| !files::exists(path))
        .unwrap_or_default()
}

/// `20260101-120000` of seconds since 1970. Days to dates: H. Hinnant, "chrono-compatible low-level date algorithms".
fn timestamp(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months counted from March.
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = year_of_era + 400 * era + carry;
    format!(
        "{year:04}{month:02}{day:02}-{:02}{:02}{:02}",
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

#[cfg(test)]
mod tests {
    use super::timestamp;

    #[test]
    fn dates_are_right_around_leap_days() {
        assert_eq!(timestamp(0), "19700101-000000");
        assert_eq!(timestamp(951_782_399), "20000228-235959");
        assert_eq!(timestamp(951_782_400), "20000229-000000");
        assert_eq!(timestamp(1_767_225_600), "20260101-000000");
    }
}
