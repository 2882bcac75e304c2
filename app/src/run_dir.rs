//! The folder of a run.
//!
//! ```text
//! config.toml  config.json  tokenizer.json  metrics.jsonl  frames.jsonl  samples.jsonl  lock
//! text.txt                         the text that is learnt, if it is not a file of this machine
//! checkpoints/step-000200/{model.safetensors, optimizer.safetensors, state.json}
//! last  best                       the names of two folders in checkpoints/
//! ```
//!
//! The process may be killed at any moment and the folder still resumes: every file is written under a temporary name,
//! flushed to the disk and renamed; a checkpoint is a folder that gets its name when it is complete, then `last` is
//! replaced, and only then older checkpoints are removed. What a kill leaves behind begins with a dot or is not named by
//! `last` or `best`; it is removed by the next save.
//!
//! `metrics.jsonl`, [`frames.jsonl`](crate::frame_log) and [`samples.jsonl`](crate::sample_log) grow, and are cut back to the
//! checkpoint when the run goes on from it. A run is complete without its frames and texts: what is wrong with them is a notice,
//! never an error.

use std::fs::TryLockError;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use braid_engine::models::config::ModelConfig;
use braid_engine::{Error, Result};

use crate::files::{self, File};
use crate::frame_log::{FRAMES, FrameLog};
use crate::protocol::{Frame, Sampled};
use crate::records::{Record, lines_until};
use crate::sample_log::{SAMPLES, SampleLog};

const CONFIG_TOML: &str = "config.toml";
const CONFIG_JSON: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
const TEXT: &str = "text.txt";
const METRICS: &str = "metrics.jsonl";
const LOCK: &str = "lock";
const CHECKPOINTS: &str = "checkpoints";
const MODEL: &str = "model.safetensors";
const OPTIMIZER: &str = "optimizer.safetensors";
const STATE: &str = "state.json";

/// One of the two files that name a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The newest.
    Last,
    /// The one with the lowest validation loss.
    Best,
}

impl Which {
    fn file(self) -> &'static str {
        match self {
            Self::Last => "last",
            Self::Best => "best",
        }
    }
}

/// The texts that make a folder a run.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// The effective configuration.
    pub config_toml: &'a str,
    /// The model's configuration.
    pub config_json: &'a str,
    /// Vocabulary and kind of the tokens.
    pub tokenizer_json: &'a str,
    /// The content of `data.file`, if that is not a file of this machine.
    pub text: Option<&'a [u8]>,
}

/// The files of a checkpoint, in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointFiles {
    /// `model.safetensors`
    pub model: Vec<u8>,
    /// `optimizer.safetensors`; a checkpoint of weights only has none.
    pub optimizer: Option<Vec<u8>>,
    /// `state.json`; a checkpoint of weights only has none.
    pub state: Option<String>,
}

/// A run's folder, open for reading.
#[derive(Clone, Debug)]
pub struct RunDir {
    path: PathBuf,
}

/// A run's folder, open for writing: one process at a time.
#[derive(Debug)]
pub struct RunWriter {
    run: RunDir,
    metrics: File,
    frames: FrameLog,
    samples: SampleLog,
    /// Held, never read: the operating system releases it when the process ends, however it ends.
    _lock: File,
}

/// A failure of the file system as a sentence.
pub(crate) fn failed(doing: &str, path: &Path, error: &io::Error) -> Error {
    let why = match error.kind() {
        io::ErrorKind::NotFound => "it does not exist".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".into(),
        io::ErrorKind::StorageFull => "the disk is full".into(),
        io::ErrorKind::NotADirectory => "a part of the path is a file".into(),
        _ => error.to_string(),
    };
    Error::File(format!("{} cannot be {doing}: {why}", path.display()))
}

/// Read a whole text file.
///
/// # Errors
/// If it cannot be read, or is not UTF-8.
pub fn read_text(path: &Path) -> Result<String> {
    let bytes = read_bytes(path)?;
    String::from_utf8(bytes)
        .map_err(|_| Error::File(format!("{} is not UTF-8 text", path.display())))
}

/// Read a whole file.
///
/// # Errors
/// If it cannot be read.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    files::read(path).map_err(|error| failed("read", path, &error))
}

/// Write a file and wait until the disk has it.
fn write_through(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || -> io::Result<()> {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(|error| failed("written", path, &error))
}

/// Make renames in a folder last. Not all systems can open a folder; those that cannot do not need it.
fn sync_folder(path: &Path) {
    if let Ok(folder) = File::open(path) {
        let _ = folder.sync_all();
    }
}

/// Replace a file: readers see the old one or the new one, never a part.
pub(crate) fn replace(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let (temporary, path) = (folder.join(format!(".{name}.new")), folder.join(name));
    write_through(&temporary, bytes)?;
    files::rename(&temporary, &path).map_err(|error| failed("written", &path, &error))?;
    sync_folder(folder);
    Ok(())
}

/// Write a file into a folder, which is made if it is not there. Readers see the old file or the new one.
///
/// # Errors
/// If it cannot be written.
pub fn write_file(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    files::create_dir_all(folder).map_err(|error| failed("written", folder, &error))?;
    replace(folder, name, bytes)
}

fn remove(path: &Path) -> Result<()> {
    let removed = if files::is_dir(path) {
        files::remove_dir_all(path)
    } else {
        files::remove_file(path)
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(failed("removed", path, &error))
        }
        _ => Ok(()),
    }
}

/// Delete a run, for good.
///
/// # Errors
/// If it cannot be removed, or another process writes it.
pub fn remove_run(path: &Path) -> Result<()> {
    let _held = RunWriter::lock(RunDir::open(path)?)?;
    remove(path)
}

/// The folder of the checkpoint after `step` updates.
#[must_use]
pub fn checkpoint_name(step: u64) -> String {
    format!("step-{step:06}")
}

impl RunDir {
    /// Open a run that exists, for reading.
    ///
    /// # Errors
    /// If the folder is not a run.
    pub fn open(path: &Path) -> Result<Self> {
        let shown = path.display();
        if !files::exists(path) {
            return Err(Error::File(format!("there is no run at {shown}")));
        }
        if !files::is_file(&path.join(CONFIG_TOML)) {
            return Err(Error::File(format!(
                "{shown} is not a run: it has no {CONFIG_TOML}"
            )));
        }
        Ok(Self { path: path.into() })
    }

    /// Whether another process is writing it now. Where there are no locks, nobody knows: `false`.
    #[must_use]
    pub fn is_being_written(&self) -> bool {
        let lock = File::open(self.path.join(LOCK));
        let tried = lock.map(|lock| lock.try_lock_shared());
        matches!(tried, Ok(Err(TryLockError::WouldBlock)))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text of `config.toml`.
    ///
    /// # Errors
    /// If it cannot be read; here and below.
    pub fn config_toml(&self) -> Result<String> {
        read_text(&self.path.join(CONFIG_TOML))
    }

    /// Refuse to go on if the model that `config.toml` describes now is not the one in `config.json`.
    ///
    /// # Errors
    /// Names the first key that differs.
    pub fn same_model(&self, model: &ModelConfig) -> Result<()> {
        let saved = ModelConfig::from_json(&self.config_json()?)?;
        if saved == *model {
            return Ok(());
        }
        let json = |config: &ModelConfig| serde_json::to_value(config).unwrap_or_default();
        let (saved, model) = (json(&saved), json(model));
        let differs = |key: &&String| saved.get(key.as_str()) != model.get(key.as_str());
        let key = model
            .as_object()
            .and_then(|all| all.keys().find(differs).cloned())
            .unwrap_or_default();
        let value = |config: &serde_json::Value| config.get(&key).cloned().unwrap_or_default();
        Err(Error::File(format!(
            "{}: `{key}` of config.json is {}, config.toml now makes it {}; the checkpoints belong to the former. Set \
             config.toml back, or begin a new run",
            self.path.display(),
            value(&saved),
            value(&model)
        )))
    }

    /// The text of `config.json`.
    ///
    /// # Errors
    /// As above.
    pub fn config_json(&self) -> Result<String> {
        read_text(&self.path.join(CONFIG_JSON))
    }

    /// The text of `tokenizer.json`.
    ///
    /// # Errors
    /// As above.
    pub fn tokenizer_json(&self) -> Result<String> {
        read_text(&self.path.join(TOKENIZER))
    }

    /// The text that is learnt, if the run keeps it.
    ///
    /// # Errors
    /// As above.
    pub fn text(&self) -> Result<Option<Vec<u8>>> {
        let path = self.path.join(TEXT);
        let there = files::exists(&path).then_some(path);
        there.map(|path| read_bytes(&path)).transpose()
    }

    /// Fetch what going on from the last checkpoint reads, where files are fetched first.
    ///
    /// # Errors
    /// If it cannot be fetched, or `last` is damaged.
    pub async fn bring(path: &Path) -> Result<()> {
        let at = |names: &[&str]| names.iter().map(|name| path.join(name)).collect::<Vec<_>>();
        let top = [
            CONFIG_TOML,
            CONFIG_JSON,
            TOKENIZER,
            TEXT,
            METRICS,
            FRAMES,
            SAMPLES,
            Which::Last.file(),
            Which::Best.file(),
        ];
        bring(path, &at(&top)).await?;
        let run = Self::open(path)?;
        match run.checkpoint(Which::Last)? {
            Some(checkpoint) => bring(path, &[checkpoint]).await,
            None => Ok(()),
        }
    }

    /// Fetch what is small: configurations, the names of checkpoints and the state of the last one.
    ///
    /// # Errors
    /// As for [`RunDir::bring`].
    pub async fn bring_summary(path: &Path) -> Result<()> {
        let top = [
            CONFIG_TOML,
            CONFIG_JSON,
            Which::Last.file(),
            Which::Best.file(),
        ];
        bring(path, &top.map(|name| path.join(name))).await?;
        let run = Self::open(path)?;
        match run.checkpoint(Which::Last)? {
            Some(checkpoint) => bring(path, &[checkpoint.join(STATE)]).await,
            None => Ok(()),
        }
    }

    /// The text that the run of this folder keeps, fetched first.
    ///
    /// # Errors
    /// As for [`RunDir::bring`].
    pub async fn bring_text(path: &Path) -> Result<Option<Vec<u8>>> {
        bring(path, &[path.join(TEXT)]).await?;
        Self::open(path)?.text()
    }

    /// Fetch records, frames and texts.
    ///
    /// # Errors
    /// As for [`RunDir::bring`].
    pub async fn bring_history(path: &Path) -> Result<()> {
        bring(
            path,
            &[CONFIG_TOML, METRICS, FRAMES].map(|name| path.join(name)),
        )
        .await
    }

    /// When the run was saved last, in seconds since 1970; `None` before its first checkpoint.
    #[must_use]
    pub fn saved_at(path: &Path) -> Option<u64> {
        files::modified(&path.join(Which::Last.file())).ok()
    }

    /// The text of `metrics.jsonl`; what is not UTF-8 is replaced.
    ///
    /// # Errors
    /// As above.
    pub fn metrics(&self) -> Result<String> {
        let bytes = read_bytes(&self.path.join(METRICS))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The file `last` or `best` is not there: fine before the first checkpoint, and a sentence after it. A kill may come
    /// between the first checkpoint of all, that of step 0, and its name.
    fn without_name(&self, which: Which) -> Result<Option<PathBuf>> {
        let folders = files::read_dir(self.path.join(CHECKPOINTS))
            .into_iter()
            .flatten()
            .flatten();
        let names = folders.filter_map(|entry| entry.file_name().into_string().ok());
        let newest = names.filter(|name| name.starts_with("step-")).max();
        match (which, newest) {
            (Which::Last, Some(newest)) if newest == checkpoint_name(0) => {
                Ok(Some(self.path.join(CHECKPOINTS).join(newest)))
            }
            (Which::Last, Some(newest)) => Err(Error::File(format!(
                "{} is missing, though the run has checkpoints; write `{newest}` into it to go on from the newest",
                self.path.join(which.file()).display()
            ))),
            _ => Ok(None),
        }
    }

    /// The folder that `last` or `best` names; `None` if there is none yet.
    ///
    /// # Errors
    /// If the file is damaged, or names a folder that does not exist.
    pub fn checkpoint(&self, which: Which) -> Result<Option<PathBuf>> {
        let file = self.path.join(which.file());
        let text = match files::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return self.without_name(which);
            }
            Err(error) => return Err(failed("read", &file, &error)),
        };
        let name = text.trim();
        let plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\']);
        let folder = self.path.join(CHECKPOINTS).join(name);
        if plain && files::is_dir(&folder) {
            return Ok(Some(folder));
        }
        Err(Error::File(format!(
            "{} names the checkpoint `{name}`, which does not exist; write the name of another folder in \
             {CHECKPOINTS} there",
            file.display()
        )))
    }

    /// The newest checkpoint, or the best one.
    ///
    /// # Errors
    /// If there is none.
    pub fn need_checkpoint(&self, which: Which) -> Result<PathBuf> {
        self.checkpoint(which)?.ok_or_else(|| {
            let shown = self.path.display();
            Error::File(format!(
                "the run {shown} has no {} checkpoint yet",
                which.file()
            ))
        })
    }
}

async fn bring(run: &Path, paths: &[PathBuf]) -> Result<()> {
    let brought = files::bring(paths).await;
    brought.map_err(|error| failed("fetched", run, &error))
}

/// Bytes of the tensors of a checkpoint, without reading them.
#[must_use]
pub fn checkpoint_bytes(folder: &Path) -> u64 {
    let bytes = |name| files::len(&folder.join(name)).unwrap_or(0);
    bytes(MODEL) + bytes(OPTIMIZER)
}

/// The state of a checkpoint; one of weights only has none.
///
/// # Errors
/// If it cannot be read.
pub fn read_state_text(folder: &Path) -> Result<Option<String>> {
    let path = folder.join(STATE);
    let there = files::exists(&path).then_some(path);
    there.map(|path| read_text(&path)).transpose()
}

/// Read the files of a checkpoint.
///
/// # Errors
/// If there is no `model.safetensors`, or a file cannot be read.
pub fn read_checkpoint(folder: &Path) -> Result<CheckpointFiles> {
    let optional = |name: &str| {
        let path = folder.join(name);
        files::exists(&path).then_some(path)
    };
    Ok(CheckpointFiles {
        model: read_bytes(&folder.join(MODEL))?,
        optimizer: optional(OPTIMIZER)
            .map(|path| read_bytes(&path))
            .transpose()?,
        state: read_state_text(folder)?,
    })
}

impl RunWriter {
    /// Make a new run. The folder appears complete or not at all.
    ///
    /// # Errors
    /// If the folder holds a run or anything else, or cannot be written.
    pub fn create(path: &Path, identity: &Identity<'_>) -> Result<Self> {
        refuse_occupied(path)?;
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let Some(name) = path.file_name() else {
            return Err(Error::File(format!(
                "{} is not the name of a new folder",
                path.display()
            )));
        };
        files::create_dir_all(parent).map_err(|error| failed("written", path, &error))?;
        let temporary = parent.join(format!(".{}.new", name.to_string_lossy()));
        remove(&temporary)?;
        files::create_dir_all(temporary.join(CHECKPOINTS))
            .map_err(|error| failed("written", path, &error))?;
        let files = [
            (CONFIG_TOML, identity.config_toml.as_bytes()),
            (CONFIG_JSON, identity.config_json.as_bytes()),
            (TOKENIZER, identity.tokenizer_json.as_bytes()),
            (METRICS, &[]),
            (LOCK, &[]),
        ];
        let text = identity.text.map(|text| (TEXT, text));
        for (file, bytes) in files.into_iter().chain(text) {
            write_through(&temporary.join(file), bytes)?;
        }
        sync_folder(&temporary);
        if files::is_dir(path) {
            // It is empty. Not every system renames onto a folder.
            files::remove_dir(path).map_err(|error| failed("written", path, &error))?;
        }
        files::rename(&temporary, path).map_err(|error| failed("written", path, &error))?;
        sync_folder(parent);
        Self::lock(RunDir::open(path)?)
    }

    /// Open a run to go on with it; remove what a kill has left behind.
    ///
    /// # Errors
    /// If the folder is not a run, or another process writes it.
    pub fn resume(path: &Path) -> Result<Self> {
        let writer = Self::lock(RunDir::open(path)?)?;
        writer.clean()?;
        Ok(writer)
    }

    fn lock(run: RunDir) -> Result<Self> {
        let path = run.path.join(LOCK);
        let open = |path: &Path| File::options().append(true).create(true).open(path);
        let lock = open(&path).map_err(|error| failed("written", &path, &error))?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => {
                let shown = run.path.display();
                return Err(Error::File(format!(
                    "another process is writing the run {shown}; end that one first, or look at the run without opening it \
                     (in the window: Open…, Look)"
                )));
            }
            // Some file systems have no locks; the run is usable without.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let path = run.path.join(METRICS);
        let metrics = open(&path).map_err(|error| failed("written", &path, &error))?;
        Ok(Self {
            frames: FrameLog::open(run.path()),
            samples: SampleLog::new(run.path()),
            run,
            metrics,
            _lock: lock,
        })
    }

    /// For reading.
    #[must_use]
    pub fn run(&self) -> &RunDir {
        &self.run
    }

    /// Drop the metric lines that a checkpoint of `step` updates does not contain.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn rewind_metrics(&mut self, step: u64) -> Result<()> {
        let path = self.run.path.join(METRICS);
        let bytes = read_bytes(&path)?;
        let kept = lines_until(&String::from_utf8_lossy(&bytes), step);
        replace(&self.run.path, METRICS, kept.as_bytes())?;
        let open = File::options().append(true).open(&path);
        self.metrics = open.map_err(|error| failed("written", &path, &error))?;
        Ok(())
    }

    /// Drop the frames that a checkpoint of `step` updates does not contain.
    ///
    /// # Errors
    /// If the file cannot be written: the run goes on without recording frames.
    pub fn rewind_frames(&mut self, step: u64) -> Result<()> {
        self.frames.rewind(step)
    }

    /// Record a frame in `frames.jsonl`, if it is due; `always`: even if it is not.
    ///
    /// # Errors
    /// If the file cannot be written: once, then nothing more is recorded.
    pub fn keep_frame(&mut self, frame: &Frame, always: bool) -> Result<()> {
        self.frames.push(frame, always)
    }

    /// Drop the texts that a checkpoint of `step` updates does not contain.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn rewind_samples(&mut self, step: u64) -> Result<()> {
        self.samples.rewind(step)
    }

    /// Add a text that the model wrote to `samples.jsonl`.
    ///
    /// # Errors
    /// If the file cannot be written: once, then nothing more is recorded.
    pub fn keep_sample(&mut self, sample: &Sampled) -> Result<()> {
        self.samples.push(sample)
    }

    /// A kill may come between a checkpoint and its record: write it then. For after [`RunWriter::rewind_metrics`].
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn ensure_saved_record(&mut self, step: u64, path: String) -> Result<()> {
        let record = Record::Saved { step, path };
        let line = record.to_line();
        let text = read_text(&self.run.path.join(METRICS))?;
        if text.lines().any(|other| other == line) {
            return Ok(());
        }
        self.append(&[record])
    }

    /// Replace `config.toml`: a field that is safe while running was changed.
    ///
    /// # Errors
    /// If it cannot be written; the old one stays.
    pub fn set_config(&mut self, toml: &str) -> Result<()> {
        replace(&self.run.path, CONFIG_TOML, toml.as_bytes())
    }

    /// Append records to `metrics.jsonl`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append(&mut self, records: &[Record]) -> Result<()> {
        let lines: String = records
            .iter()
            .map(|record| record.to_line() + "\n")
            .collect();
        self.metrics
            .write_all(lines.as_bytes())
            .map_err(|error| failed("written", &self.run.path.join(METRICS), &error))
    }

    /// Save a checkpoint; returns its folder, seen from the run's.
    ///
    /// # Errors
    /// If something cannot be written. What was there before still resumes then.
    pub fn save(&mut self, step: u64, files: &CheckpointFiles, best: bool) -> Result<String> {
        let root = &self.run.path;
        // A checkpoint contains the metrics up to it, so they must be on the disk first.
        let synced = self.metrics.sync_all();
        synced.map_err(|error| failed("written", &root.join(METRICS), &error))?;
        let all = root.join(CHECKPOINTS);
        let name = checkpoint_name(step);
        let (temporary, folder) = (all.join(format!(".{name}.new")), all.join(&name));
        // Rewriting the folder that `last` or `best` names would leave a moment without it; it has the same content.
        if !self.named()?.contains(&name) {
            remove(&temporary)?;
            files::create_dir_all(&temporary)
                .map_err(|error| failed("written", &temporary, &error))?;
            write_through(&temporary.join(MODEL), &files.model)?;
            if let Some(optimizer) = &files.optimizer {
                write_through(&temporary.join(OPTIMIZER), optimizer)?;
            }
            if let Some(state) = &files.state {
                write_through(&temporary.join(STATE), state.as_bytes())?;
            }
            sync_folder(&temporary);
            remove(&folder)?;
            files::rename(&temporary, &folder)
                .map_err(|error| failed("written", &folder, &error))?;
            sync_folder(&all);
        }
        // `best` first: a run that is killed in between resumes from the older `last` and comes here again.
        if best {
            replace(root, Which::Best.file(), name.as_bytes())?;
        }
        replace(root, Which::Last.file(), name.as_bytes())?;
        self.clean()?;
        Ok(format!("{CHECKPOINTS}/{name}"))
    }

    /// The names in `last` and `best`.
    fn named(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for which in [Which::Last, Which::Best] {
            if let Some(folder) = self.run.checkpoint(which)? {
                names.extend(
                    folder
                        .file_name()
                        .map(|name| name.to_string_lossy().into_owned()),
                );
            }
        }
        Ok(names)
    }

    /// Remove checkpoints that neither `last` nor `best` names, and temporaries.
    fn clean(&self) -> Result<()> {
        let kept = self.named()?;
        let list = |folder: &Path| -> Vec<PathBuf> {
            let entries = files::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect()
        };
        let name = |path: &Path| {
            path.file_name()
                .map(|n| n.to_string_lossy().into_owned())
                .unwrap_or_default()
        };
        let ours = |name: &str| name.starts_with('.') && name.ends_with(".new");
        for path in list(&self.run.path.join(CHECKPOINTS)) {
            let name = name(&path);
            // Folders that a person has put there stay.
            if ours(&name) || (name.starts_with("step-") && !kept.contains(&name)) {
                remove(&path)?;
            }
        }
        for path in list(&self.run.path) {
            if ours(&name(&path)) {
                remove(&path)?;
            }
        }
        Ok(())
    }
}

/// A new run needs a place of its own.
///
/// # Errors
/// If there is a run, or anything else.
pub fn refuse_occupied(path: &Path) -> Result<()> {
    let shown = path.display();
    if files::exists(&path.join(CONFIG_TOML)) {
        return Err(Error::File(format!(
            "{shown} holds a run already; go on with it (--resume {shown}) or choose another folder"
        )));
    }
    match files::read_dir(path).map(|mut entries| entries.next().is_some()) {
        Ok(true) => Err(Error::File(format!(
            "{shown} is not empty and not a run; choose another folder"
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(failed("written", path, &error))
        }
        _ => Ok(()),
    }
}
