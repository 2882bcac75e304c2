//! `braid list`

use braid_engine::models::config::{FeedForwardConfig, ResidualConfig};
use clap::Args;

use super::{ConfigArgs, Failure, Outcome, USAGE, say};
use crate::catalogue::{Entry, Size, catalogue};
use crate::config::RunConfig;
use crate::report::grouped;

/// Lines are at most so long.
const WIDTH: usize = 80;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  braid list
  braid list --set model.layers=12 --set model.width=768
  braid list dar --set residual.layers_per_block=4
  braid list moe --json")]
pub(super) struct ListArgs {
    /// One mechanism or kind of feed-forward sublayer, with its equations and settings
    #[arg(value_name = "KIND")]
    kind: Option<String>,
    #[command(flatten)]
    config: ConfigArgs,
    /// Print one JSON object a line instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ListArgs) -> Outcome {
    let config = configuration(args)?;
    let mut entries = catalogue(&config)?;
    if let Some(kind) = &args.kind {
        entries.retain(|entry| entry.kind == kind);
    }
    if args.json {
        for entry in &entries {
            say(serde_json::to_string(entry).unwrap_or_default());
        }
        return Ok(());
    }
    if args.kind.is_some() {
        entries.iter().for_each(|entry| say(detail(entry)));
        return Ok(());
    }
    let model = &config.model;
    say(format!(
        "{} layers, width {}, feed-forward {}. `braid list KIND` says more about one.",
        model.layers, model.width, model.ffn
    ));
    let mut section = "";
    for entry in &entries {
        if entry.section != section {
            section = entry.section;
            say(format!("\n[{section}] kind = .."));
        }
        say(format!("\n{}", overview(entry)));
    }
    Ok(())
}

/// The section that has such a kind.
fn section_of(kind: &str) -> Result<&'static str, Failure> {
    if ResidualConfig::KINDS.contains(&kind) {
        return Ok("residual");
    }
    if FeedForwardConfig::KINDS.contains(&kind) {
        return Ok("feed_forward");
    }
    let all = [&ResidualConfig::KINDS[..], &FeedForwardConfig::KINDS[..]].concat();
    let distance = |other: &str| strsim::damerau_levenshtein(kind, other);
    let near = all.iter().min_by_key(|other| distance(other));
    let near = near
        .filter(|other| distance(other) <= 3)
        .map_or_else(String::new, |other| format!("; did you mean {other}?"));
    let message = format!(
        "there is no kind \"{kind}\"; there are {}{near}",
        all.join(", ")
    );
    Err(Failure::new(USAGE, message))
}

/// The configuration. Settings of a kind's section are for that kind, whatever the file chooses.
fn configuration(args: &ListArgs) -> Result<RunConfig, Failure> {
    let text = args.config.text()?;
    let mut settings = args.config.settings.clone();
    if let Some(kind) = &args.kind {
        let section = section_of(kind)?;
        let file = RunConfig::parse(&text, &[])?;
        let chosen = match section {
            "residual" => file.residual.kind(),
            _ => file.feed_forward.kind(),
        };
        let own = format!("{section}.");
        if chosen != kind && settings.iter().any(|setting| setting.starts_with(&own)) {
            settings.insert(0, format!("{own}kind={kind}"));
        }
    }
    Ok(RunConfig::parse(&text, &settings)?)
}

/// `+9,898 parameters`
fn size(entry: &Entry) -> String {
    match &entry.size {
        Size::Parameters { count, .. } if entry.section == "residual" => {
            format!("+{} parameters", grouped(*count as u64))
        }
        Size::Parameters { count, .. } => format!("{} parameters", grouped(*count as u64)),
        Size::Impossible(_) => "not available".into(),
    }
}

fn overview(entry: &Entry) -> String {
    let size = size(entry);
    let mut lines = vec![format!("{:<20}{size:>60}", entry.kind)];
    lines.extend(wrapped(entry.summary, "  "));
    if !entry.paper.is_empty() {
        lines.extend(wrapped(entry.paper, "  "));
    }
    if let Size::Impossible(why) = &entry.size {
        lines.extend(wrapped(why, "  "));
    }
    lines.extend(entry.choices.iter().flat_map(|choice| bullet(choice)));
    lines.join("\n")
}

fn detail(entry: &Entry) -> String {
    let mut lines = wrapped(&format!("{}: {}", entry.kind, entry.summary), "");
    if !entry.paper.is_empty() {
        lines.extend(wrapped(entry.paper, ""));
    }
    lines.push(String::new());
    lines.extend(entry.equations.lines().map(|line| format!("  {line}")));
    lines.push("\nsettings, as they are here".into());
    if entry.keys.is_empty() {
        lines.push("  none".into());
    }
    for key in &entry.keys {
        let words = match key.words.is_empty() {
            true => String::new(),
            false => format!("  (one of {})", key.words.join(", ")),
        };
        let line = format!("{} = {}{words}", key.name, key.value);
        lines.extend(hanging(&line, "  ", "      "));
    }
    lines.push(format!("\n{}", size(entry)));
    match &entry.size {
        Size::Parameters { tensors, .. } => {
            for tensor in tensors {
                let shape: Vec<String> = tensor.shape.iter().map(u32::to_string).collect();
                let shape = format!("{} x [{}]", tensor.count, shape.join(", "));
                lines.push(format!("  {:<57} {shape:>20}", tensor.name));
            }
        }
        Size::Impossible(why) => lines.extend(wrapped(why, "  ")),
    }
    if !entry.choices.is_empty() {
        lines.push("\nwhere the paper is silent, or we differ".into());
        lines.extend(entry.choices.iter().flat_map(|choice| bullet(choice)));
    }
    lines.join("\n")
}

fn bullet(text: &str) -> Vec<String> {
    hanging(text, "  - ", "    ")
}

/// Cut at blanks into lines that begin with `indent`.
fn wrapped(text: &str, indent: &str) -> Vec<String> {
    hanging(text, indent, indent)
}

/// Cut at blanks into lines; the first begins with `first`, the others with `rest`.
fn hanging(text: &str, first: &str, rest: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("{rest}{word}")),
            None => lines.push(format!("{first}{word}")),
        }
    }
    lines
}
