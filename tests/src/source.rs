//! Reading the repository's own source, for tests that hold it against its rules.

use std::fs;
use std::path::{Path, PathBuf};

/// The repository.
#[must_use]
pub fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests).into()
}

/// All `.rs` files below a folder, sorted; none if it does not exist.
#[must_use]
pub fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Rust text without line comments (so without documentation) and attributes of one line. Line breaks stay.
#[must_use]
pub fn without_comments(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        // `//` inside of a string is an address: keep it.
        let code = match line.split_once("//") {
            Some((before, _)) if before.ends_with(':') => line,
            Some((before, _)) => before,
            None => line,
        };
        if !code.trim_start().starts_with("#[") {
            out += code;
        }
        out.push('\n');
    }
    out
}
