//! `braid report`

use std::path::{Path, PathBuf};

use braid_engine::error::bytes_for_people;
use clap::Args;

use super::{Failure, Outcome, USAGE, say};
use crate::html::{Material, document};
use crate::run_dir::write_file;
use crate::sweep::gather::gather;
use crate::sweep::plan::folder_of;
use crate::sweep::summary::Summary;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  braid report runs/20260101-120000-dar-recall
  braid report runs/one runs/two --out comparison.html
  braid report sweeps/small

The page holds everything and fetches nothing; each figure has links to itself as SVG and to its data as CSV. An analysis is
in it if there is one: braid analyze RUN.")]
pub(super) struct ReportArgs {
    /// Folders of runs, or of sweeps
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// File to write [default: report.html in the first folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(args: &ReportArgs) -> Outcome {
    let (mut sweeps, mut runs) = (Vec::new(), Vec::new());
    for folder in &args.runs {
        if folder.join("config.toml").is_file() || !folder.is_dir() {
            runs.push(Material::read(folder)?);
            continue;
        }
        let summary = Summary::of(&gather(std::slice::from_ref(folder), None, None)?);
        for run in &summary.runs {
            let mut material = Material::read(&folder_of(folder, &run.variant, run.seed))?;
            material.name = format!("{}, seed {}", run.variant, run.seed);
            runs.push(material);
        }
        sweeps.push(summary);
    }
    let out = match (&args.out, args.runs.first()) {
        (Some(out), _) => out.clone(),
        (None, Some(first)) => first.join("report.html"),
        (None, None) => PathBuf::from("report.html"),
    };
    let name = out.file_name().and_then(|name| name.to_str());
    let Some(name) = name.filter(|_| !out.is_dir()) else {
        let message = format!("--out {}: it must be the name of a file", out.display());
        return Err(Failure::new(USAGE, message));
    };
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty());
    let page = document(&sweeps, &runs);
    write_file(parent.unwrap_or(Path::new(".")), name, page.as_bytes())?;
    say(format!(
        "written    {}, {}",
        out.display(),
        bytes_for_people(page.len() as u64)
    ));
    Ok(())
}
