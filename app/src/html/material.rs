//! What a report tells of a run: read from its folder.

use std::fs;
use std::path::{Path, PathBuf};

use braid_engine::checkpoint::{State, read_state};
use braid_engine::models::config::ModelConfig;
use braid_engine::{Error, Result};
use serde_json::Value;

use crate::config::RunConfig;
use crate::convert::Origin;
use crate::protocol::Sampled;
use crate::run_dir::{RunDir, Which, read_text};
use crate::sample_log;
use crate::sweep::outcome::Metrics;

/// Rows of a table of an analysis that are shown.
const MOST_ROWS: usize = 40;

/// One run.
#[derive(Debug)]
pub struct Material {
    /// Name of its folder.
    pub name: String,
    /// The folder.
    pub folder: PathBuf,
    /// Its configuration.
    pub config: RunConfig,
    /// Its model.
    pub model: ModelConfig,
    /// Of its last checkpoint; none before the first one.
    pub state: Option<State>,
    /// What it was converted from, if it was.
    pub origin: Option<Origin>,
    /// Loss of each update.
    pub losses: Vec<(f64, f64)>,
    /// Held-out losses.
    pub evaluations: Vec<(f64, f64)>,
    /// The last records of their kinds; `null` without.
    pub evaluation: Value,
    /// Depth weights.
    pub routing: Value,
    /// Use of experts.
    pub experts: Value,
    /// The update that diverged.
    pub diverged: Option<u64>,
    /// Seconds of training.
    pub seconds: f64,
    /// Tokens per second, the median.
    pub tokens_per_s: f64,
    /// Texts that it wrote, oldest first.
    pub samples: Vec<Sampled>,
    /// `subject` of its analysis; `null` without one.
    pub analysed: Value,
    /// Tables of the analysis.
    pub tables: Vec<Analysed>,
}

/// A table of an analysis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Analysed {
    /// Name of its file, without the ending.
    pub name: String,
    /// Head and rows.
    pub rows: Vec<Vec<String>>,
    /// Rows that are left out.
    pub more: usize,
    /// The whole file.
    pub csv: String,
}

/// The fields of a line of comma-separated values, as `Table::csv` writes them.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let (mut quoted, mut letters) = (false, line.chars().peekable());
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                if let Some(last) = fields.last_mut() {
                    last.push('"');
                }
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => {
                if let Some(last) = fields.last_mut() {
                    last.push(letter);
                }
            }
        }
    }
    fields
}

/// A number with the digits that mean something; other texts as they are.
fn short(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(number) if text.contains(['.', 'e']) => crate::analyses::table::figure(number),
        _ => text.to_owned(),
    }
}

/// A figure and its interval, which are three columns of the file, in one.
fn joined(head: &[String], row: &[String]) -> Vec<String> {
    let mut cells = Vec::new();
    let mut place = 0;
    while let Some(cell) = row.get(place) {
        let name = head.get(place).map_or("", String::as_str);
        let interval = head
            .get(place + 1)
            .is_some_and(|next| *next == format!("{name} low"));
        let bounds = [place + 1, place + 2].map(|place| row.get(place).map_or("", String::as_str));
        cells.push(match bounds {
            [low, high] if interval && !low.is_empty() && !high.is_empty() => {
                format!("{} [{}, {}]", short(cell), short(low), short(high))
            }
            _ => short(cell),
        });
        place += if interval { 3 } else { 1 };
    }
    cells
}

impl Analysed {
    fn of(name: String, csv: String) -> Self {
        let lines: Vec<Vec<String>> = csv.lines().map(fields).collect();
        let head = lines.first().cloned().unwrap_or_default();
        let kept = lines.iter().take(MOST_ROWS + 1).enumerate();
        let rows = kept.map(|(number, row)| {
            if number > 0 {
                return joined(&head, row);
            }
            let names = row
                .iter()
                .filter(|name| !name.ends_with(" low") && !name.ends_with(" high"));
            names.cloned().collect()
        });
        Self {
            rows: rows.collect(),
            more: lines.len().saturating_sub(MOST_ROWS + 1),
            name,
            csv,
        }
    }
}

/// The tables of an analysis, by name; none without one.
fn tables(folder: &Path) -> Result<Vec<Analysed>> {
    let entries = fs::read_dir(folder.join("analysis"))
        .into_iter()
        .flatten()
        .flatten();
    let csv = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "csv");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(csv).collect();
    paths.sort_unstable();
    let read = |path: PathBuf| {
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        Ok(Analysed::of(name, read_text(&path)?))
    };
    paths.into_iter().map(read).collect()
}

impl Material {
    /// Read a run. Frames are left out.
    ///
    /// # Errors
    /// If the folder is no run, or a file of it is damaged.
    pub fn read(folder: &Path) -> Result<Self> {
        let run = RunDir::open(folder)?;
        let text = run.metrics()?;
        let mut metrics = Metrics::read(&text);
        let (mut losses, mut evaluations) = (Vec::new(), Vec::new());
        let (mut routing, mut experts) = (Value::Null, Value::Null);
        for record in text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        {
            let number = |key: &str| record[key].as_f64().unwrap_or(f64::NAN);
            match record["event"].as_str() {
                Some("train") => losses.push((number("step"), number("loss"))),
                Some("eval") => evaluations.push((number("step"), number("val_loss"))),
                Some("routing") => routing = record,
                Some("experts") => experts = record,
                _ => {}
            }
        }
        let checkpoint = run.checkpoint(Which::Last)?;
        let state = checkpoint.map(|folder| read_state(&read_text(&folder.join("state.json"))?));
        let analysis = folder.join("analysis.json");
        let analysed = if analysis.is_file() {
            serde_json::from_str::<Value>(&read_text(&analysis)?).map_err(|error| {
                Error::File(format!("{} cannot be used: {error}", analysis.display()))
            })?
        } else {
            Value::Null
        };
        let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.into());
        Ok(Self {
            name: absolute
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            config: RunConfig::parse(&run.config_toml()?, &[])?,
            model: ModelConfig::from_json(&run.config_json()?)?,
            state: state.transpose()?,
            origin: Origin::read(folder)?,
            losses,
            evaluations,
            evaluation: metrics.evaluation.take(),
            routing,
            experts,
            diverged: metrics.diverged,
            seconds: metrics.seconds,
            tokens_per_s: metrics.rate(),
            samples: sample_log::read(folder)?,
            tables: if analysed.is_null() {
                Vec::new()
            } else {
                tables(folder)?
            },
            analysed: analysed["subject"].clone(),
            folder: folder.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Analysed;

    #[test]
    fn a_table_of_figures_with_intervals_is_read_back() {
        let csv =
            "name,x,x low,x high,y\n\"a, \"\"b\"\"\",0.25,0.125,0.5,3\nc,0.25,,,\n".to_owned();
        let table = Analysed::of("t".into(), csv);
        assert_eq!(table.rows[0], ["name", "x", "y"]);
        assert_eq!(table.rows[1], ["a, \"b\"", "0.250 [0.125, 0.500]", "3"]);
        assert_eq!(table.rows[2], ["c", "0.250", ""]);
        assert_eq!(table.more, 0);
    }
}
