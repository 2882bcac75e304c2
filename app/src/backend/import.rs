//! Files that came from outside: what they are, and whether they can be used, before anything is kept.

use std::io::{Cursor, Read};
use std::path::{Component, Path, PathBuf};

use braid_engine::data::Tokenizer;
use braid_engine::models::config::ModelConfig;
use braid_engine::{Error, Result, checkpoint};
use zip::ZipArchive;

use crate::config::RunConfig;
use crate::files;
use crate::protocol::NamedFiles;
use crate::run_dir::{RunDir, Which, checkpoint_name, failed, read_checkpoint, write_file};
use crate::run_name::{default_name, free, plain};
use crate::sampler::parameters;

/// Bytes that an archive may hold when it is unpacked.
const MOST: u64 = 2 << 30;

/// What was found.
#[derive(Debug)]
pub(super) enum Found {
    /// A run, its files by their paths in its folder.
    Run {
        /// What its folder was called.
        name: Option<String>,
        /// The files.
        files: NamedFiles,
    },
    /// The parameters of some model.
    Weights(Vec<u8>),
}

/// What these files are.
///
/// # Errors
/// If they are nothing that can be used: what was looked for.
pub(super) fn look(files: NamedFiles) -> Result<Found> {
    let files = match files.as_slice() {
        [(name, bytes)] if ending(name, "zip") => {
            let stem = name.strip_suffix(".zip").unwrap_or(name);
            // An archive without a folder in it is named after itself.
            let inside = unpack(name, bytes)?.into_iter();
            inside
                .map(|(path, bytes)| (format!("{stem}/{path}"), bytes))
                .collect()
        }
        _ => files,
    };
    if let Some((folder, files)) = run(&files) {
        let name = folder.rsplit('/').find(|part| !part.is_empty());
        return Ok(Found::Run {
            name: name.map(plain),
            files,
        });
    }
    let is_config = |(path, _): &(String, Vec<u8>)| path.rsplit('/').next() == Some("config.toml");
    if files.iter().any(is_config) {
        return Err(Error::File(
            "a run has config.toml and config.json beside each other; drop all of its files, or its folder".into(),
        ));
    }
    let weights =
        |(name, _): &&(String, Vec<u8>)| ending(name, "safetensors") && !name.contains("optimizer");
    let mut all = files.iter().filter(weights);
    match (all.next(), all.next()) {
        (Some((_, bytes)), None) => Ok(Found::Weights(bytes.clone())),
        (Some(_), Some(_)) => Err(Error::File(
            "several checkpoints at once; drop one of them, or the whole folder of a run".into(),
        )),
        _ => {
            let first = files.first().map_or("nothing", |(name, _)| name.as_str());
            Err(Error::File(format!(
                "{first}: neither a run (a folder, its files or a .zip, with config.toml and config.json) nor a checkpoint \
                 (.safetensors)"
            )))
        }
    }
}

fn ending(name: &str, ending: &str) -> bool {
    let own = name.rsplit_once('.').map(|(_, own)| own);
    own.is_some_and(|own| own.eq_ignore_ascii_case(ending))
}

/// The files of the run that lies highest, and the folder that it lies in.
fn run(files: &NamedFiles) -> Option<(&str, NamedFiles)> {
    let has = |path: &str| files.iter().any(|(own, _)| own == path);
    let folders = files
        .iter()
        .filter_map(|(path, _)| path.strip_suffix("config.toml"));
    let runs = folders.filter(|folder| folder.is_empty() || folder.ends_with('/'));
    let runs = runs.filter(|folder| has(&format!("{folder}config.json")));
    let folder = runs.min_by_key(|folder| folder.matches('/').count())?;
    let own = files.iter().filter_map(|(path, bytes)| {
        let path = path.strip_prefix(folder)?;
        useful(path).then(|| (path.to_owned(), bytes.clone()))
    });
    Some((folder, whole(own.collect())))
}

/// Whether a path leads downwards, and is nothing that only means something where it came from.
fn useful(path: &str) -> bool {
    let normal = |part: Component<'_>| matches!(part, Component::Normal(_));
    let hidden = path
        .split('/')
        .any(|part| part.starts_with('.') || part.is_empty());
    Path::new(path).components().all(normal) && !hidden && path != "lock" && !path.contains('\\')
}

/// A checkpoint whose files lie beside the others, as when they were chosen one by one, gets its folder.
fn whole(mut files: NamedFiles) -> NamedFiles {
    let state = files.iter().find(|(path, _)| path == "state.json");
    let Some((_, state)) = state else {
        return files;
    };
    let text = String::from_utf8_lossy(state);
    let Ok(state) = checkpoint::read_state(&text) else {
        return files;
    };
    let name = checkpoint_name(state.step);
    for (path, _) in &mut files {
        if ["state.json", "model.safetensors", "optimizer.safetensors"].contains(&path.as_str()) {
            *path = format!("checkpoints/{name}/{path}");
        }
    }
    files.retain(|(path, _)| path != "last" && path != "best");
    files.push(("last".into(), name.into_bytes()));
    files
}

fn unpack(name: &str, bytes: &[u8]) -> Result<NamedFiles> {
    let broken = |error: &dyn std::fmt::Display| {
        Error::File(format!(
            "{name} is not an archive that can be read: {error}"
        ))
    };
    let mut zip = ZipArchive::new(Cursor::new(bytes)).map_err(|error| broken(&error))?;
    let mut files = NamedFiles::new();
    let mut left = MOST;
    for index in 0..zip.len() {
        let mut entry = zip.by_index(index).map_err(|error| broken(&error))?;
        if entry.is_dir() {
            continue;
        }
        let path = entry.name().map_err(|error| broken(&error))?.into_owned();
        let mut content = Vec::new();
        let read = entry.by_ref().take(left + 1).read_to_end(&mut content);
        read.map_err(|error| broken(&error))?;
        left = left
            .checked_sub(content.len() as u64)
            .ok_or_else(|| broken(&"it holds more than 2 GiB"))?;
        files.push((path, content));
    }
    Ok(files)
}

/// Keep a run below `place`, if it is whole; returns its folder.
///
/// # Errors
/// If a file is missing or damaged, or does not fit the others; nothing is kept then.
pub(super) fn keep(
    place: &Path,
    name: Option<&str>,
    now: u64,
    content: &NamedFiles,
) -> Result<PathBuf> {
    let temporary = free(place, ".import.new");
    let kept = write(&temporary, content).and_then(|()| {
        let config = check(&temporary)?;
        let own = name.map_or_else(|| default_name(&config, now), str::to_owned);
        let folder = free(place, &own);
        let renamed = files::rename(&temporary, &folder);
        renamed.map_err(|error| failed("written", &folder, &error))?;
        Ok(folder)
    });
    if kept.is_err() && files::exists(&temporary) {
        let _ = files::remove_dir_all(&temporary);
    }
    // Where it lay while it was looked at means nothing to a person.
    let hidden = format!("{}/", temporary.display());
    kept.map_err(|error| match error {
        Error::File(message) => Error::File(message.replace(&hidden, "")),
        other => other,
    })
}

fn write(folder: &Path, content: &NamedFiles) -> Result<()> {
    for (path, bytes) in content {
        let path = folder.join(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        write_file(path.parent().unwrap_or(folder), &name, bytes)?;
    }
    Ok(())
}

/// Whether it could go on from here: its configuration.
fn check(folder: &Path) -> Result<RunConfig> {
    let run = RunDir::open(folder)?;
    let config = RunConfig::parse(&run.config_toml()?, &[])?;
    let model = ModelConfig::from_json(&run.config_json()?)?;
    let tokenizer = run.tokenizer_json().map_err(|_| {
        Error::File("the run has no tokenizer.json; drop it with the other files".into())
    })?;
    Tokenizer::from_json(&tokenizer)?;
    if let Some(last) = run.checkpoint(Which::Last)? {
        let files = read_checkpoint(&last)?;
        let optimizer = files.optimizer.as_deref();
        checkpoint::read(&*parameters(&model)?, &files.model, optimizer)?;
        files
            .state
            .as_deref()
            .map(checkpoint::read_state)
            .transpose()?;
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;
    use crate::backend::export::archive;
    use crate::texts::dataset;

    const TOML: &str = "[model]\nlayers = 1\nwidth = 16\nheads = 1\ncontext = 16\n[data]\ntask = \"copy\"\n[train]\nsteps = 4\n";

    const STATE: &str =
        "{\"schema\":1,\"step\":3,\"seed\":0,\"data\":\"\",\"best\":null,\"device\":\"cpu\"}";

    /// The files of a run, its last checkpoint in its place.
    fn run() -> NamedFiles {
        let config = RunConfig::parse(TOML, &[]).expect("a configuration");
        let data = dataset(&config, None, None, &mut |_, _| {}).expect("a task");
        let model = config.model_config(data.vocab_size()).expect("a model");
        let parameters = parameters(&model).expect("parameters");
        let values = vec![0.5; parameters.arena_len()];
        let weights = checkpoint::model_file(&parameters, &values).expect("a file");
        let text = |name: &str, text: &str| (name.to_owned(), text.as_bytes().to_vec());
        vec![
            text("config.toml", TOML),
            text("config.json", &model.to_json()),
            text("tokenizer.json", &data.tokenizer().to_json()),
            text("metrics.jsonl", ""),
            text("lock", ""),
            text("last", "step-000003"),
            text("checkpoints/step-000003/state.json", STATE),
            ("checkpoints/step-000003/model.safetensors".into(), weights),
        ]
    }

    fn below(folder: &str, files: NamedFiles) -> NamedFiles {
        let below = |(path, bytes)| (format!("{folder}/{path}"), bytes);
        files.into_iter().map(below).collect()
    }

    fn kept(place: &Path, files: NamedFiles) -> Result<PathBuf> {
        match look(files)? {
            Found::Run { name, files } => keep(place, name.as_deref(), 0, &files),
            Found::Weights(_) => panic!("a run is no checkpoint"),
        }
    }

    fn last(folder: &Path) -> Vec<u8> {
        let run = RunDir::open(folder).expect("a run");
        let checkpoint = run.need_checkpoint(Which::Last).expect("a checkpoint");
        read_checkpoint(&checkpoint).expect("its files").model
    }

    #[test]
    fn a_run_comes_as_a_folder_as_single_files_and_as_the_archive_that_is_handed_out() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = kept(place.path(), below("dropped/mine", run())).expect("a folder");
        assert_eq!(folder, place.path().join("mine"));
        assert!(!folder.join("lock").exists());
        let single = run().into_iter().map(|(path, bytes)| {
            let name = path.rsplit('/').next().unwrap_or_default();
            (name.to_owned(), bytes)
        });
        let single = kept(place.path(), single.collect()).expect("its files");
        let name = single.file_name().expect("a name").to_string_lossy();
        assert!(
            name.starts_with("19700101-000000-") && name.ends_with("-copy"),
            "{name}"
        );
        let zip = archive(&folder, "mine").expect("an archive");
        let unpacked = kept(place.path(), vec![("mine.zip".into(), zip)]).expect("an archive");
        assert_eq!(unpacked, place.path().join("mine-2"));
        for other in [single, unpacked] {
            assert_eq!(last(&other), last(&folder));
        }
        // An archive of the files without their folder is named after itself.
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (path, bytes) in run() {
            zip.start_file(path, SimpleFileOptions::default())
                .expect("begun");
            zip.write_all(&bytes).expect("written");
        }
        let zip = zip.finish().expect("whole").into_inner();
        let flat = kept(place.path(), vec![("my run.zip".into(), zip)]).expect("an archive");
        assert_eq!(flat, place.path().join("my_run"));
    }

    #[test]
    fn what_is_damaged_or_missing_has_its_sentence_and_leaves_nothing_behind() {
        let place = tempfile::tempdir().expect("a folder");
        let changed = |name: &str, bytes: Option<&[u8]>| {
            let mut files = run();
            let at = files.iter().position(|(path, _)| path.ends_with(name));
            let at = at.expect("it is there");
            match bytes {
                Some(bytes) => files[at].1 = bytes.to_vec(),
                None => drop(files.remove(at)),
            }
            kept(place.path(), files).expect_err(name).to_string()
        };
        let short = changed("model.safetensors", Some(b"1234567"));
        assert!(
            short.contains("(7 bytes) is not a complete safetensors file"),
            "{short}"
        );
        assert!(changed("config.json", None).contains("config.json beside each other"));
        assert!(changed("tokenizer.json", None).contains("no tokenizer.json"));
        let gone = changed("model.safetensors", None);
        assert!(
            gone.starts_with("checkpoints/step-000003/model.safetensors cannot be read"),
            "{gone}"
        );
        assert!(changed("state.json", Some(b"{}")).contains("state.json cannot be used"));
        assert!(changed("last", Some(b"step-9")).contains("names the checkpoint `step-9`"));
        assert!(changed("config.toml", Some(b"[model")).contains("TOML"));
        let left = std::fs::read_dir(place.path()).expect("the folder").count();
        assert_eq!(left, 0);
    }

    #[test]
    fn paths_that_lead_elsewhere_are_left_out_and_other_files_are_refused() {
        let place = tempfile::tempdir().expect("a folder");
        let mut files = run();
        for path in [
            "../outside",
            "/outside",
            "checkpoints/../../outside",
            "a\\b",
            ".hidden",
        ] {
            files.push((path.into(), b"x".to_vec()));
        }
        let folder = kept(&place.path().join("runs"), files).expect("a run");
        assert!(!place.path().join("outside").exists());
        assert!(!folder.join(".hidden").exists());
        for (name, sentence) in [
            ("notes.txt", "notes.txt: neither a run"),
            ("broken.zip", "broken.zip is not an archive"),
        ] {
            let error = look(vec![(name.into(), b"text".to_vec())]).expect_err(name);
            assert!(error.to_string().contains(sentence), "{error}");
        }
        let weights = |name: &str| (name.to_owned(), vec![0_u8; 8]);
        let two = vec![weights("a.safetensors"), weights("b.safetensors")];
        assert!(look(two).is_err());
        let one = vec![
            weights("model.safetensors"),
            weights("optimizer.safetensors"),
        ];
        assert!(matches!(look(one), Ok(Found::Weights(_))));
    }
}
