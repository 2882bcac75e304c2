//! What is in the folders of a sweep, whatever machine wrote it.

use std::fs;
use std::path::{Path, PathBuf};

use braid_engine::{Error, Result};

use super::outcome::{Progress, progress};
use super::plan::{PlanFile, check_name, folder_of, seed_of};
use crate::config::RunConfig;
use crate::run_dir::RunDir;

/// Runs of one variant may differ in these: the seed, and where a machine keeps its texts.
const MAY_DIFFER: [&str; 3] = ["train.seed", "data.file", "data.tokenizer_file"];

/// Runs of several variants and seeds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gathered {
    /// Names in their order; the others are compared with the first.
    pub variants: Vec<String>,
    /// By variant, then by seed.
    pub runs: Vec<Found>,
    /// Sentences that a person should see.
    pub notices: Vec<String>,
}

/// One run, or the place of one that is planned.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Name of its variant.
    pub variant: String,
    /// Its seed.
    pub seed: u64,
    /// How far it is.
    pub progress: Progress,
}

/// A variant's configuration, and where it was read.
struct Known {
    name: String,
    config: RunConfig,
    place: String,
}

/// How much a run has to give: of two in the same place of the table, the fuller one counts.
fn fullness(progress: &Progress) -> u64 {
    match progress {
        Progress::Absent => 0,
        Progress::Part(step) => 1 + step,
        Progress::Diverged(_) => u64::MAX - 1,
        Progress::Finished(_) => u64::MAX,
    }
}

/// Names of the folders in a folder, sorted.
fn folders(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> = folders
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    names
}

/// Remember the configuration of a variant, or refuse one that differs from what is known of it.
fn know(known: &mut Vec<Known>, name: &str, config: RunConfig, place: String) -> Result<()> {
    let Some(before) = known.iter().find(|other| other.name == name) else {
        known.push(Known {
            name: name.to_owned(),
            config,
            place,
        });
        return Ok(());
    };
    match config.difference(&before.config, &MAY_DIFFER) {
        None => Ok(()),
        Some((key, own, other)) => Err(Error::File(format!(
            "variant {name} is not the same everywhere: `{key}` is {own} in {place}, and {other} in {}; leave one of them out",
            before.place
        ))),
    }
}

/// Put a run into the table, unless there is a better one.
fn put(runs: &mut Vec<Found>, found: Found) -> Result<()> {
    let same = |other: &&mut Found| other.variant == found.variant && other.seed == found.seed;
    let Some(before) = runs.iter_mut().find(same) else {
        runs.push(found);
        return Ok(());
    };
    if let (Progress::Finished(one), Progress::Finished(two)) = (&before.progress, &found.progress)
        && (one.val_loss.to_bits(), &one.data) != (two.val_loss.to_bits(), &two.data)
    {
        return Err(Error::File(format!(
            "{}, seed {} was trained twice with different results: val loss {} on {}, and {} on {}; leave one of the \
             folders out",
            found.variant, found.seed, one.val_loss, one.device, two.val_loss, two.device
        )));
    }
    if fullness(&found.progress) > fullness(&before.progress) {
        *before = found;
    }
    Ok(())
}

/// Sentences about finished runs that were not trained on the same data or device.
fn differences(runs: &[Found]) -> Vec<String> {
    let outcomes = || {
        runs.iter().filter_map(|run| match &run.progress {
            Progress::Finished(outcome) => Some((run, outcome)),
            _ => None,
        })
    };
    let mut notices = Vec::new();
    let Some((first, one)) = outcomes().next() else {
        return notices;
    };
    let label = |run: &Found| format!("{}, seed {}", run.variant, run.seed);
    if let Some((run, _)) = outcomes().find(|(_, outcome)| outcome.data != one.data) {
        notices.push(format!(
            "not all runs were trained on the same data: {} was trained on others than {}",
            label(run),
            label(first)
        ));
    }
    let mut devices: Vec<&str> = outcomes()
        .map(|(_, outcome)| outcome.device.as_str())
        .collect();
    devices.sort_unstable();
    devices.dedup();
    if devices.len() > 1 {
        notices.push(format!(
            "the runs were trained on different devices, whose roundings differ: {}",
            devices.join("; ")
        ));
    }
    notices
}

/// Look through the folders of sweeps. What a plan names and is not there counts as absent. With `only`, nothing but what it
/// names is looked at; else every folder's own plan is read. `first` is what the others are compared with.
///
/// # Errors
/// If there is nothing, a variant was trained in two ways, or a run in two with different results.
pub fn gather(
    places: &[PathBuf],
    only: Option<&PlanFile>,
    first: Option<&str>,
) -> Result<Gathered> {
    let mut gathered = Gathered::default();
    let mut known: Vec<Known> = Vec::new();
    let mut plans: Vec<PlanFile> = only.cloned().into_iter().collect();
    for place in places {
        if !place.is_dir() {
            return Err(Error::File(format!(
                "there is no folder {}",
                place.display()
            )));
        }
        if only.is_none() {
            plans.extend(PlanFile::read(place)?);
        }
    }
    for plan in &plans {
        for variant in &plan.variants {
            let config = RunConfig::parse(&variant.config, &[])?;
            know(&mut known, &variant.name, config, "the plan".into())?;
            if !gathered.variants.contains(&variant.name) {
                gathered.variants.push(variant.name.clone());
            }
            for &seed in &plan.seeds {
                let (variant, progress) = (variant.name.clone(), Progress::Absent);
                put(
                    &mut gathered.runs,
                    Found {
                        variant,
                        seed,
                        progress,
                    },
                )?;
            }
        }
    }
    for place in places {
        for name in folders(place) {
            let seeds = folders(&place.join(&name));
            for seed in seeds.iter().filter_map(|folder| seed_of(folder)) {
                let planned = |run: &Found| run.variant == name && run.seed == seed;
                let wanted = only.is_none() || gathered.runs.iter().any(planned);
                let folder = folder_of(place, &name, seed);
                if !wanted || !folder.join("config.toml").is_file() {
                    continue;
                }
                check_name(&name)?;
                let config = RunConfig::parse(&RunDir::open(&folder)?.config_toml()?, &[])?;
                know(&mut known, &name, config, folder.display().to_string())?;
                let progress = progress(&folder)?;
                let variant = name.clone();
                put(
                    &mut gathered.runs,
                    Found {
                        variant,
                        seed,
                        progress,
                    },
                )?;
                if !gathered.variants.contains(&name) {
                    gathered.variants.push(name.clone());
                }
            }
        }
    }
    if gathered.runs.is_empty() {
        let shown: Vec<String> = places
            .iter()
            .map(|place| place.display().to_string())
            .collect();
        return Err(Error::File(format!(
            "there are no runs of a sweep in {}; they are looked for as VARIANT/seed-N",
            shown.join(", ")
        )));
    }
    if let Some(first) = first {
        let Some(place) = gathered.variants.iter().position(|name| name == first) else {
            return Err(Error::File(format!(
                "there is no variant `{first}`; there are {}",
                gathered.variants.join(", ")
            )));
        };
        gathered.variants[..=place].rotate_right(1);
    } else if plans.is_empty() && gathered.variants.len() > 1 {
        gathered.notices.push(format!(
            "there is no sweep.json, so the others are compared with {}, the first by name; choose with --first",
            gathered.variants[0]
        ));
    }
    let Gathered { variants, runs, .. } = &mut gathered;
    let place = |run: &Found| variants.iter().position(|name| *name == run.variant);
    runs.sort_by_key(|run| (place(run), run.seed));
    let more = differences(&gathered.runs);
    gathered.notices.extend(more);
    Ok(gathered)
}
