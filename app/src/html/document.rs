//! The page.

use serde_json::Value;

use super::element::{escaped, figure, table};
use super::material::Material;
use super::svg::{Map, Series, chart};
use crate::analyses::table::Table;
use crate::names::{record_label, source_short};
use crate::report::{active_parameters, duration, grouped};
use crate::row;
use crate::sampler::parameters;
use crate::sweep::command::line;
use crate::sweep::summary::{EXPLANATION, Summary};

/// Points of a curve: more cannot be told apart.
const MOST_POINTS: usize = 600;
/// Texts of a run that are shown, the newest.
const MOST_TEXTS: usize = 5;

/// Nothing is fetched, and no script is run, whatever a text in the page says.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// Means of neighbours, so that a curve has at most [`MOST_POINTS`]; the second value is how many make one.
fn thinned(points: &[(f64, f64)]) -> (Vec<(f64, f64)>, usize) {
    let together = points.len().div_ceil(MOST_POINTS).max(1);
    let mean = |chunk: &[(f64, f64)]| {
        let count = chunk.len() as f64;
        let sum = chunk
            .iter()
            .fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
        (sum.0 / count, sum.1 / count)
    };
    (points.chunks(together).map(mean).collect(), together)
}

/// Curves of all runs, as a figure.
fn curves(name: &'static str, caption: &str, y: &str, series: &[Series]) -> String {
    let mut data = Table::new(name, "", &["run", "step", name]);
    for one in series {
        let rows = one
            .points
            .iter()
            .map(|(step, value)| row![one.name.clone(), *step, *value]);
        data.rows.extend(rows);
    }
    figure(
        name,
        caption,
        &chart(caption, "updates", y, series),
        &data.csv(),
    )
}

fn losses(runs: &[Material]) -> String {
    let (mut series, mut most) = (Vec::new(), 1);
    for run in runs {
        let (points, together) = thinned(&run.losses);
        most = most.max(together);
        series.push(Series {
            name: run.name.clone(),
            points,
        });
    }
    let caption = match most {
        1 => "Loss of each batch before its update".to_owned(),
        _ => format!("Loss of the batches before their updates, means of up to {most} updates"),
    };
    curves("loss", &caption, "loss, nats", &series)
}

fn evaluations(runs: &[Material]) -> String {
    let series: Vec<Series> = runs
        .iter()
        .map(|run| Series {
            name: run.name.clone(),
            points: run.evaluations.clone(),
        })
        .collect();
    curves("val_loss", "Held-out loss", "held-out loss, nats", &series)
}

/// The columns of a map: sources in the order of their creation, what is current last.
fn columns(sites: &[Value]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let streams = sites
        .iter()
        .flat_map(|site| site["streams"].as_array().into_iter().flatten());
    for source in streams.flat_map(|stream| stream["sources"].as_array().into_iter().flatten()) {
        if let Some(name) = source
            .as_str()
            .filter(|name| !names.iter().any(|known| known == name))
        {
            names.push(name.to_owned());
        }
    }
    names.sort_by_key(|name| match name.as_str() {
        "partial" => 1,
        "null" => 2,
        _ => 0,
    });
    names
}

/// The depth weights of each stream, the read-out on top.
fn maps(routing: &Value) -> Vec<Map> {
    let none = Vec::new();
    let sites = routing["sites"].as_array().unwrap_or(&none);
    let columns = columns(sites);
    let count = |site: &Value| site["streams"].as_array().map_or(0, Vec::len);
    let streams = sites.iter().map(count).max().unwrap_or(0);
    let of_stream = |stream: usize| {
        let rows = sites.iter().rev().filter(|site| count(site) > stream);
        let cell = |site: &Value, column: &String| {
            let read = &site["streams"][stream];
            let sources = read["sources"].as_array()?;
            let place = sources.iter().position(|source| source == column)?;
            read["weight"][place].as_f64()
        };
        let (names, cells) = rows
            .map(|site| {
                let number = u32::try_from(site["site"].as_u64().unwrap_or(0)).unwrap_or(0);
                let label = record_label(number, site["kind"].as_str().unwrap_or_default());
                (
                    label,
                    columns.iter().map(|column| cell(site, column)).collect(),
                )
            })
            .unzip();
        Map {
            rows: names,
            columns: columns.iter().map(|name| source_short(name)).collect(),
            cells,
        }
    };
    (0..streams).map(of_stream).collect()
}

/// The share of the choices that each expert of each layer gets.
fn experts(record: &Value) -> Option<Map> {
    let layers = record["layers"]
        .as_array()
        .filter(|layers| !layers.is_empty())?;
    let load = |layer: &Value| -> Vec<Option<f64>> {
        let load = layer["load"].as_array().into_iter().flatten();
        load.map(Value::as_f64).collect()
    };
    let cells: Vec<Vec<Option<f64>>> = layers.iter().map(load).collect();
    let most = cells.iter().map(Vec::len).max().unwrap_or(0);
    Some(Map {
        rows: layers
            .iter()
            .map(|layer| format!("layer {}", layer["layer"].as_u64().unwrap_or(0) + 1))
            .collect(),
        columns: (0..most).map(|expert| expert.to_string()).collect(),
        cells,
    })
}

/// A number of the last validation, or a dash.
fn last(run: &Material, key: &str, shown: impl Fn(f64) -> String) -> String {
    run.evaluation[key]
        .as_f64()
        .map_or_else(|| "-".into(), shown)
}

fn overview(runs: &[Material]) -> String {
    let head = [
        "run",
        "mechanism",
        "parameters",
        "updates",
        "val loss",
        "bits/byte",
        "right",
        "wall time",
        "tokens/s",
        "seed",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    for run in runs {
        let count = parameters(&run.model).map_or_else(
            |_| "-".into(),
            |parameters| grouped(parameters.count() as u64),
        );
        let steps = run.state.as_ref().map_or(0, |state| state.step);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate is not negative"
        )]
        let rate = grouped(run.tokens_per_s.max(0.0) as u64);
        rows.push(vec![
            run.name.clone(),
            run.config.residual.kind().into(),
            count,
            format!("{} of {}", grouped(steps), grouped(run.config.train.steps)),
            last(run, "val_loss", |loss| format!("{loss:.4}")),
            last(run, "bits_per_byte", |bits| format!("{bits:.4}")),
            last(run, "accuracy", |share| format!("{:.1} %", 100.0 * share)),
            duration(run.seconds),
            rate,
            run.config.train.seed.to_string(),
        ]);
    }
    format!("<div class=\"wide\">{}</div>", table(&rows))
}

/// What a person should know about a run before its figures.
fn facts(run: &Material) -> String {
    let mut facts = vec![format!("Folder: {}", run.folder.display())];
    if let Some(state) = &run.state {
        facts.push(format!("Trained on: {}", state.device));
        facts.push(format!(
            "Data: {} (fingerprint {})",
            run.config.data_name(),
            state.data
        ));
    }
    if let Some(origin) = &run.origin {
        facts.push(format!(
            "It was {}; held-out loss {:.4} before and {:.4} after the conversion",
            origin.words(),
            origin.before,
            origin.after
        ));
    }
    if run.model.experts().is_some()
        && let Ok(all) = parameters(&run.model)
    {
        facts.push(format!(
            "{} parameters are active for one token",
            grouped(active_parameters(&run.model, &all) as u64)
        ));
    }
    if let Some(step) = run.diverged {
        facts.push(format!("The training diverged at update {}", grouped(step)));
    }
    let items = facts
        .iter()
        .map(|fact| format!("<li>{}</li>", escaped(fact)));
    format!("<ul>{}</ul>\n", items.collect::<String>())
}

/// The command that trains such a run anew.
fn command(run: &Material) -> String {
    let settings = run.config.settings().into_iter();
    let arguments: Vec<String> = ["train".to_owned()]
        .into_iter()
        .chain(settings.flat_map(|setting| ["--set".to_owned(), setting]))
        .collect();
    let note = match &run.origin {
        Some(_) => {
            "<p class=\"note\">It trains such a model from the start; this one began as another one that was converted.</p>"
        }
        None => "",
    };
    format!(
        "<h3>Command</h3><pre>{}</pre>{note}\n",
        escaped(&line(&arguments))
    )
}

fn routing(run: &Material) -> String {
    let maps = maps(&run.routing);
    let step = run.routing["step"].as_u64().unwrap_or(0);
    let mut html = String::new();
    if !maps.is_empty() {
        html += "<h3>What each sublayer reads</h3><p class=\"note\">Rows are sublayers, the read-out on top; columns are sources, from the \
                 embedding on. Mean weights over the tokens of a fixed validation batch; colours go from 0 (dark) to 1 (light), \
                 of negative weights they show the size. A weight says what was read, not what would be missed.</p><div class=\"maps\">";
        for (stream, map) in maps.iter().enumerate() {
            let caption = format!("stream {stream}, after {} updates", grouped(step));
            html += &figure(
                &format!("routing-{stream}"),
                &caption,
                &map.svg(&caption),
                &map.csv(),
            );
        }
        html += "</div>\n";
    }
    if let Some(map) = experts(&run.experts) {
        let caption = "Share of the choices that each expert gets";
        html += &figure("experts", caption, &map.svg(caption), &map.csv());
    }
    html
}

fn texts(run: &Material) -> String {
    let newest = &run.samples[run.samples.len().saturating_sub(MOST_TEXTS)..];
    let mut html = String::new();
    if !newest.is_empty() {
        html += "<h3>Texts that it wrote while it learnt</h3>";
    }
    for sample in newest {
        let text: String = sample
            .tokens
            .iter()
            .map(|token| token.text.as_str())
            .collect();
        html += &format!(
            "<p class=\"note\">after {} updates, temperature {}, seed {}; the prompt is the beginning</p><pre>{}</pre>\n",
            grouped(sample.step),
            sample.temperature,
            sample.seed,
            escaped(&text)
        );
    }
    html
}

fn analysis(run: &Material) -> String {
    if run.tables.is_empty() {
        return String::new();
    }
    let subject = &run.analysed;
    let text = |key: &str| subject[key].as_u64().map_or_else(|| "?".into(), grouped);
    let mut html = format!(
        "<h3>Analysis</h3><p class=\"note\">Of the checkpoint after {} updates, on {} sequences of {} tokens; brackets are 95 % intervals over \
         sequences. docs/analyses.md of the program defines every figure.</p>\n",
        text("step"),
        text("sequences"),
        text("context")
    );
    for found in &run.tables {
        let more = match found.more {
            0 => String::new(),
            more => format!("<p class=\"note\">and {more} more rows in the file</p>"),
        };
        html += &format!(
            "<h4>{} <span class=\"links\">{}</span></h4><div class=\"wide\">{}</div>{more}\n",
            escaped(&found.name),
            super::element::download(
                &format!("{}.csv", found.name),
                "text/csv",
                &found.csv,
                "CSV"
            ),
            table(&found.rows)
        );
    }
    html
}

fn section(run: &Material) -> String {
    let name = escaped(&run.name);
    format!(
        "<section><h2>{name}</h2>{}{}{}{}{}<h3>Configuration</h3><pre>{}</pre></section>\n",
        facts(run),
        command(run),
        routing(run),
        texts(run),
        analysis(run),
        escaped(&run.config.to_toml())
    )
}

/// The table of a sweep.
fn sweep(summary: &Summary) -> String {
    let note = escaped(EXPLANATION).replace('\n', "<br>");
    format!(
        "<h2 class=\"first\">Comparison with {}</h2><div class=\"wide\">{}</div><p class=\"note\">{note}</p>\n",
        escaped(&summary.first),
        table(&summary.table().words())
    )
}

/// The whole page: comparisons, an overview, common curves, then run by run.
#[must_use]
pub fn document(sweeps: &[Summary], runs: &[Material]) -> String {
    let title = match runs {
        [one] => format!("Braid: {}", one.name),
        _ => format!("Braid: {} runs", runs.len()),
    };
    let title = escaped(&title);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"><title>{title}</title>\n<style>\n{}</style></head>\n<body>\n\
         <h1>{title}</h1>\n{}<h2 class=\"first\">Overview</h2>\n{}\n{}{}{}<p class=\"note\">Written by braid {}.</p>\n</body></html>\n",
        include_str!("style.css"),
        sweeps.iter().map(sweep).collect::<String>(),
        overview(runs),
        losses(runs),
        evaluations(runs),
        runs.iter().map(section).collect::<String>(),
        env!("CARGO_PKG_VERSION")
    )
}
