//! `std::fs`, and the few things that it has as methods of paths.

use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

pub use std::fs::{
    File, create_dir_all, read, read_dir, read_to_string, remove_dir, remove_dir_all, remove_file,
    rename,
};

/// Whether there is something.
#[must_use]
pub fn exists(path: &Path) -> bool {
    path.exists()
}

/// Whether it is a folder.
#[must_use]
pub fn is_dir(path: &Path) -> bool {
    path.is_dir()
}

/// Whether it is a file.
#[must_use]
pub fn is_file(path: &Path) -> bool {
    path.is_file()
}

/// Bytes of a file.
///
/// # Errors
/// If there is none.
pub fn len(path: &Path) -> io::Result<u64> {
    Ok(std::fs::metadata(path)?.len())
}

/// When a file was written last, in seconds since 1970.
///
/// # Errors
/// If there is none, or the system does not say.
pub fn modified(path: &Path) -> io::Result<u64> {
    let modified = std::fs::metadata(path)?.modified()?;
    Ok(modified
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs()))
}

/// Make sure that these files, and all that is below these folders, can be read: a disk always can.
///
/// # Errors
/// Never.
pub async fn bring(paths: &[PathBuf]) -> io::Result<()> {
    let _ = paths;
    Ok(())
}
