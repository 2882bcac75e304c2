//! Tables of figures with intervals: as text for a terminal, and as comma-separated values.

use std::fmt::Write;

use braid_engine::analysis::Estimate;

/// What stands in a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A word or a whole number.
    Text(String),
    /// A number without an interval.
    Number(f64),
    /// A number with one.
    Estimate(Estimate),
    /// There is no such figure.
    None,
}

impl From<Estimate> for Cell {
    fn from(estimate: Estimate) -> Self {
        Self::Estimate(estimate)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None, Into::into)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u32> for Cell {
    fn from(number: u32) -> Self {
        Self::Text(number.to_string())
    }
}

impl From<usize> for Cell {
    fn from(number: usize) -> Self {
        Self::Text(number.to_string())
    }
}

/// Rows of fields.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Name of its file, without an ending.
    pub name: &'static str,
    /// One line for people.
    pub title: String,
    /// Names of the columns; a `+` at the end marks figures with an interval.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
    /// How many rows a terminal shows.
    pub shown: usize,
}

/// A row of fields of different kinds.
#[macro_export]
macro_rules! row {
    ($($cell:expr),* $(,)?) => { vec![$($crate::analyses::table::Cell::from($cell)),*] };
}

impl Table {
    /// A table without rows, of which a terminal shows all.
    #[must_use]
    pub fn new(name: &'static str, title: impl Into<String>, columns: &[&str]) -> Self {
        Self {
            name,
            title: title.into(),
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
            rows: Vec::new(),
            shown: usize::MAX,
        }
    }

    /// Head and rows as a terminal shows them, field by field.
    #[must_use]
    pub fn words(&self) -> Vec<Vec<String>> {
        let head = self
            .columns
            .iter()
            .map(|column| column.trim_end_matches('+').to_owned());
        let rows = self.rows.iter().take(self.shown);
        let rows = rows.map(|row| row.iter().map(shown).collect());
        std::iter::once(head.collect()).chain(rows).collect()
    }

    /// For a terminal: title, head, rows with aligned columns.
    #[must_use]
    pub fn text(&self) -> String {
        let lines = self.words();
        let width = |column: usize| {
            let lengths = lines.iter().map(|line| line[column].chars().count());
            lengths.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut text = format!("{}\n", self.title);
        for line in lines {
            let cells = line
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:<width$}"));
            let line = cells.collect::<Vec<_>>().join("  ");
            _ = writeln!(text, "  {}", line.trim_end());
        }
        if let Some(more) = self
            .rows
            .len()
            .checked_sub(self.shown)
            .filter(|&more| more > 0)
        {
            _ = writeln!(text, "  and {more} more rows in {}.csv", self.name);
        }
        text
    }

    /// Comma-separated values with a head; a figure with an interval takes three columns, and what does not exist is empty.
    #[must_use]
    pub fn csv(&self) -> String {
        let head = self
            .columns
            .iter()
            .map(|column| match column.strip_suffix('+') {
                Some(name) => format!(
                    "{},{},{}",
                    quoted(name),
                    quoted(&format!("{name} low")),
                    quoted(&format!("{name} high"))
                ),
                None => quoted(column),
            });
        let mut csv = head.collect::<Vec<_>>().join(",") + "\n";
        for row in &self.rows {
            let fields = row.iter().zip(&self.columns).map(|(cell, column)| {
                match (cell, column.ends_with('+')) {
                    (Cell::Estimate(Estimate { value, low, high }), true) => {
                        [value, low, high].map(|&v| number(v)).join(",")
                    }
                    (_, true) => ",,".to_owned(),
                    (Cell::Text(text), false) => quoted(text),
                    (Cell::Number(value), false) => number(*value),
                    (Cell::Estimate(estimate), false) => number(estimate.value),
                    (Cell::None, false) => String::new(),
                }
            });
            csv += &(fields.collect::<Vec<_>>().join(",") + "\n");
        }
        csv
    }
}

/// A field of a file: quoted where a comma, a quote or a line end would break it.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// A number of a file; empty if it does not exist.
fn number(value: f64) -> String {
    if value.is_finite() {
        value.to_string()
    } else {
        String::new()
    }
}

/// A field of a terminal.
fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => text.clone(),
        Cell::Number(value) => figure(*value),
        Cell::Estimate(Estimate { value, low, high }) if low.is_finite() && high.is_finite() => {
            format!("{} [{}, {}]", figure(*value), figure(*low), figure(*high))
        }
        Cell::Estimate(estimate) => figure(estimate.value),
        Cell::None => "-".to_owned(),
    }
}

/// Three or four digits that mean something.
#[must_use]
pub fn figure(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        "-".to_owned()
    } else if size == 0.0 {
        "0".to_owned()
    } else if !(0.001..10_000.0).contains(&size) {
        format!("{value:.2e}")
    } else if size < 10.0 {
        format!("{value:.3}")
    } else if size < 1000.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}
