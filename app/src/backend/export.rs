//! Handing out a run as one archive, or its last parameters.

use std::io::{Cursor, Write};
use std::path::Path;

use braid_engine::{Error, Result};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::files;
use crate::protocol::{Exported, Piece};
use crate::run_dir::{RunDir, Which, failed, read_bytes, read_checkpoint};

/// A run, or a piece of it.
///
/// # Errors
/// If it is no run, or cannot be read.
pub(super) async fn export(folder: &Path, piece: Piece) -> Result<Exported> {
    RunDir::bring(folder).await?;
    let run = RunDir::open(folder)?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    match piece {
        Piece::Checkpoint => {
            let checkpoint = run.need_checkpoint(Which::Last)?;
            let step = checkpoint.file_name().unwrap_or_default();
            Ok(Exported {
                name: format!("{name}-{}.safetensors", step.to_string_lossy()),
                bytes: read_checkpoint(&checkpoint)?.model,
            })
        }
        Piece::Run => {
            let all = files::bring(&[folder.to_owned()]).await;
            all.map_err(|error| failed("fetched", folder, &error))?;
            Ok(Exported {
                name: format!("{name}.zip"),
                bytes: archive(folder, &name)?,
            })
        }
    }
}

/// All files of a run, below its name.
pub(super) fn archive(folder: &Path, name: &str) -> Result<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    add(&mut zip, folder, name)?;
    let written = zip.finish();
    Ok(written.map_err(|error| broken(name, &error))?.into_inner())
}

fn broken(name: &str, error: &dyn std::fmt::Display) -> Error {
    Error::File(format!("the archive of {name} cannot be written: {error}"))
}

fn add(zip: &mut ZipWriter<Cursor<Vec<u8>>>, folder: &Path, name: &str) -> Result<()> {
    let entries = files::read_dir(folder).map_err(|error| failed("read", folder, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| failed("read", folder, &error))?;
        let own = entry.file_name().to_string_lossy().into_owned();
        let (path, inside) = (entry.path(), format!("{name}/{own}"));
        // What is being written, and what only means something here.
        if own.starts_with('.') || own == "lock" {
            continue;
        }
        if files::is_dir(&path) {
            add(zip, &path, &inside)?;
            continue;
        }
        let begun = zip.start_file(inside, SimpleFileOptions::default());
        begun.map_err(|error| broken(name, &error))?;
        let written = zip.write_all(&read_bytes(&path)?);
        written.map_err(|error| broken(name, &error))?;
    }
    Ok(())
}
