//! `braid verify`

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use braid_engine::device::{Device, Precision};
use braid_engine::golden::{self, CaseFiles, Verdict, Worst};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::{DeviceArgs, FAILED, Failure, Outcome, USAGE, say};
use crate::run_dir::{read_bytes, read_text};

#[derive(Debug, Args)]
#[command(after_help = "Example: braid verify golden --device cpu --dtype f64")]
pub(super) struct VerifyArgs {
    /// Folders of golden cases, or folders that contain some
    #[arg(value_name = "CASE", required = true)]
    cases: Vec<PathBuf>,
    #[command(flatten)]
    device: DeviceArgs,
    /// Number type; f64 needs the device cpu, and its limits are a hundred times tighter
    #[arg(long, value_enum, default_value = "f32")]
    dtype: Dtype,
    /// Print one JSON object a case instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Dtype {
    F32,
    F64,
}

/// One line of `--json`.
#[derive(Debug, Serialize)]
struct Line<'a> {
    case: &'a str,
    pass: bool,
    groups: BTreeMap<String, Worst>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// Folders at or below `folder` that have a `case.json`, sorted.
fn cases_in(folder: &Path) -> Vec<PathBuf> {
    if folder.join("case.json").exists() {
        return vec![folder.into()];
    }
    let mut inner: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        // Links are not followed: they may lead back up.
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect();
    inner.sort();
    inner.iter().flat_map(|folder| cases_in(folder)).collect()
}

fn check(folder: &Path, device: &Device) -> Result<Verdict, Failure> {
    let (config, case) = (
        read_text(&folder.join("config.json"))?,
        read_text(&folder.join("case.json"))?,
    );
    let model = read_bytes(&folder.join("model.safetensors"))?;
    let expected = read_bytes(&folder.join("expected.safetensors"))?;
    let files = CaseFiles {
        config: &config,
        case: &case,
        model: &model,
        expected: &expected,
    };
    Ok(pollster::block_on(golden::verify(
        &files,
        device.executor(),
    ))?)
}

pub(super) fn run(args: &VerifyArgs) -> Outcome {
    let mut folders = Vec::new();
    for path in &args.cases {
        let found = cases_in(path);
        if found.is_empty() {
            let shown = path.display();
            let message = if path.exists() {
                format!("{shown} has no golden case: no folder in it has a case.json")
            } else {
                format!("there is nothing at {shown}")
            };
            return Err(Failure::new(USAGE, message));
        }
        folders.extend(found);
    }
    let precision = match args.dtype {
        Dtype::F32 => Precision::F32,
        Dtype::F64 => Precision::F64,
    };
    let (device, _) = args.device.open(precision)?;
    let mut failed = 0;
    for folder in &folders {
        let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
        let name = absolute
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let line = match check(folder, &device) {
            Ok(verdict) => Line {
                case: &name,
                pass: verdict.pass,
                groups: verdict.groups,
                skipped: verdict.skipped,
                missing: verdict.missing,
                message: None,
            },
            Err(failure) => Line {
                case: &name,
                pass: false,
                groups: BTreeMap::new(),
                skipped: Vec::new(),
                missing: Vec::new(),
                message: Some(failure.message),
            },
        };
        failed += usize::from(!line.pass);
        if args.json {
            say(serde_json::to_string(&line).unwrap_or_default());
        } else {
            say(text(&line));
        }
    }
    if !args.json {
        let dtype = if precision == Precision::F64 {
            "f64"
        } else {
            "f32"
        };
        let (all, passed) = (folders.len(), folders.len() - failed);
        say(format!(
            "{passed} of {all} cases pass on {}, {dtype}",
            device.report()
        ));
    }
    if failed > 0 {
        Err(Failure::silent(FAILED))
    } else {
        Ok(())
    }
}

/// `dar-k1  PASS  logits 0.012 (logits)  ..`: worst error over limit, and where.
fn text(line: &Line<'_>) -> String {
    let mut out = format!(
        "{:<28} {}",
        line.case,
        if line.pass { "PASS" } else { "FAIL" }
    );
    for (group, worst) in &line.groups {
        out.push_str(&format!("  {group} {:.2e}", worst.ratio));
        if worst.tensor != *group {
            out.push_str(&format!(" ({})", worst.tensor));
        }
    }
    if !line.skipped.is_empty() {
        out.push_str(&format!("  skipped: {}", line.skipped.join(", ")));
    }
    if !line.missing.is_empty() {
        out.push_str(&format!("  missing: {}", line.missing.join(", ")));
    }
    if let Some(message) = &line.message {
        out.push_str(&format!("  {message}"));
    }
    out
}
