//! What a sweep is to train.

use std::path::{Path, PathBuf};

use braid_engine::{Error, Result};
use serde::{Deserialize, Serialize};

use super::seeds::Seeds;
use crate::config::RunConfig;
use crate::run_dir::{read_text, write_file};
use crate::sampler::parameters;

/// The file of the plan, in the sweep's folder.
const FILE: &str = "sweep.json";
/// Version of that file.
const SCHEMA: u32 = 1;

/// Keys that make batches and initial values what they are. Variants that differ in one of them differ in more than a
/// mechanism.
const SHARED: [&str; 10] = [
    "data.task",
    "data.file",
    "data.tokenizer",
    "data.vocab",
    "data.tokenizer_file",
    "data.val_fraction",
    "model.context",
    "train.batch",
    "train.accumulate",
    "train.steps",
];

/// One of the things that are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Its name, and that of its folder.
    pub name: String,
    /// How it is trained. The seed in it is not read.
    pub config: RunConfig,
}

/// Variants, seeds, and where they are trained and kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// The others are compared with the first.
    pub variants: Vec<Variant>,
    /// Each variant is trained with each.
    pub seeds: Seeds,
    /// As `--device` of a training.
    pub device: String,
    /// The folder.
    pub out: PathBuf,
}

/// One run of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// Name of the variant.
    pub variant: String,
    /// Its seed.
    pub seed: u64,
    /// All settings, the seed among them.
    pub config: RunConfig,
    /// Folder of the run.
    pub folder: PathBuf,
}

impl Planned {
    /// `delta, seed 2`
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}, seed {}", self.variant, self.seed)
    }
}

/// Where a run lies in the folder of a sweep.
#[must_use]
pub fn folder_of(out: &Path, variant: &str, seed: u64) -> PathBuf {
    out.join(variant).join(format!("seed-{seed}"))
}

/// The seed in the name of a run's folder.
#[must_use]
pub fn seed_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("seed-")?;
    let seed = digits.parse().ok()?;
    // `seed-01` would be the same run twice.
    (format!("{seed}") == digits).then_some(seed)
}

/// Refuse a name that cannot be a folder's everywhere.
///
/// # Errors
/// Says what a name may be.
pub fn check_name(name: &str) -> Result<()> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.+=".contains(c);
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && name.chars().all(good) && !name.ends_with('.') && name.len() <= 80 {
        return Ok(());
    }
    Err(Error::config(
        "variant.name",
        format!(
            "is `{name}`; it is the name of a folder: letters, digits and - _ . + = only, a letter or digit first, at most 80"
        ),
    ))
}

impl Sweep {
    /// Put together and look over.
    ///
    /// # Errors
    /// If there are no variants, two have the same name, or one cannot be trained: nothing is trained then.
    pub fn new(variants: Vec<Variant>, seeds: Seeds, device: String, out: PathBuf) -> Result<Self> {
        if variants.is_empty() {
            return Err(Error::File(
                "there are no variants; a sweep file has a table [[variant]] for each thing that is compared".into(),
            ));
        }
        for (place, variant) in variants.iter().enumerate() {
            let name = &variant.name;
            check_name(name)?;
            let mut before = variants[..place].iter();
            // Not all file systems tell capitals from small letters.
            if before.any(|other| other.name.eq_ignore_ascii_case(name)) {
                return Err(Error::config(
                    "variant.name",
                    format!("is `{name}` twice; give each variant a name of its own"),
                ));
            }
            // A vocabulary of one token: the text has not been read.
            let model = variant.config.model_config(1).and_then(|model| {
                parameters(&model)?;
                Ok(())
            });
            model.map_err(|error| Error::File(format!("variant {name}: {error}")))?;
            let data = &variant.config.data;
            for file in [&data.file, &data.tokenizer_file].into_iter().flatten() {
                if !Path::new(file).is_file() {
                    return Err(Error::File(format!(
                        "variant {name}: there is no file {file}"
                    )));
                }
            }
        }
        Ok(Self {
            variants,
            seeds,
            device,
            out,
        })
    }

    /// All runs. Seeds come one after the other, so that what is finished early can be compared early.
    #[must_use]
    pub fn runs(&self) -> Vec<Planned> {
        let of_seed = |&seed: &u64| {
            self.variants.iter().map(move |variant| {
                let mut config = variant.config.clone();
                config.train.seed = seed;
                Planned {
                    variant: variant.name.clone(),
                    seed,
                    config,
                    folder: folder_of(&self.out, &variant.name, seed),
                }
            })
        };
        self.seeds.list().iter().flat_map(of_seed).collect()
    }

    /// Sentences about variants that do not see what the first one sees: their differences mean something else.
    #[must_use]
    pub fn unlike(&self) -> Vec<String> {
        let Some((first, others)) = self.variants.split_first() else {
            return Vec::new();
        };
        let sentence = |other: &Variant| {
            let values = |key: &str| [other, first].map(|variant| variant.config.value(key));
            let key = SHARED.into_iter().find(|key| {
                let [own, theirs] = values(key);
                own != theirs
            })?;
            let [own, theirs] = values(key);
            Some(format!(
                "{} and {} do not see the same batches (`{key}` is {own} and {theirs}): what tells them apart is more than \
                 a mechanism",
                other.name, first.name
            ))
        };
        others.iter().filter_map(sentence).collect()
    }
}

/// The plan as a file: what `collect` knows of runs that it does not find.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanFile {
    schema: u32,
    /// In their order.
    pub variants: Vec<PlannedVariant>,
    /// All of them.
    pub seeds: Vec<u64>,
}

/// A variant in that file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedVariant {
    /// Its name.
    pub name: String,
    /// Its configuration, TOML.
    pub config: String,
}

impl PlanFile {
    /// The plan of a sweep.
    #[must_use]
    pub fn of(sweep: &Sweep) -> Self {
        let variants = sweep.variants.iter().map(|variant| PlannedVariant {
            name: variant.name.clone(),
            config: variant.config.to_toml(),
        });
        Self {
            schema: SCHEMA,
            variants: variants.collect(),
            seeds: sweep.seeds.list().to_vec(),
        }
    }

    /// Read it from a sweep's folder; `None` if there is none.
    ///
    /// # Errors
    /// If it is damaged or newer than this program.
    pub fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let shown = path.display();
        let plan: Self = serde_json::from_str(&read_text(&path)?).map_err(|error| {
            Error::File(format!(
                "{shown} cannot be used ({error}); remove it, and run `braid sweep` again to have it written anew"
            ))
        })?;
        if plan.schema != SCHEMA {
            return Err(Error::File(format!(
                "{shown} has version {}, this program knows {SCHEMA}",
                plan.schema
            )));
        }
        plan.variants
            .iter()
            .try_for_each(|variant| check_name(&variant.name))?;
        Ok(Some(plan))
    }

    /// Write it into a sweep's folder.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).expect("texts and numbers are JSON");
        write_file(folder, FILE, (text + "\n").as_bytes())
    }
}
