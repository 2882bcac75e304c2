//! Where the window keeps presets and appearance between starts: one file in the folder for configurations of the person.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::run_dir::{read_text, replace};

/// Name of the file.
const FILE: &str = "window.toml";

/// A folder that may not be there yet; none, if the system names no place.
#[derive(Debug)]
pub(super) struct Shelf {
    folder: Option<PathBuf>,
}

impl Shelf {
    /// `~/.config/braid` on Linux, and where it belongs on other systems.
    pub(super) fn of_person() -> Self {
        let folder = dirs::config_dir().map(|folder| folder.join("braid"));
        Self { folder }
    }

    pub(super) fn read(&self) -> Result<Option<String>, String> {
        let Some(folder) = &self.folder else {
            return Ok(None);
        };
        let path = folder.join(FILE);
        match path.try_exists() {
            Ok(false) => Ok(None),
            Ok(true) => read_text(&path)
                .map(Some)
                .map_err(|error| error.to_string()),
            Err(error) => Err(sentence("read", &path, &error)),
        }
    }

    pub(super) fn write(&self, text: &str) -> Result<(), String> {
        let folder = self
            .folder
            .as_ref()
            .ok_or("This system names no folder for configurations: set XDG_CONFIG_HOME to one.")?;
        fs::create_dir_all(folder).map_err(|error| sentence("made", folder, &error))?;
        replace(folder, FILE, text.as_bytes()).map_err(|error| error.to_string())
    }
}

fn sentence(done: &str, path: &Path, error: &io::Error) -> String {
    format!("{} cannot be {done}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_there_in_the_next_start() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = Some(root.path().join("not yet").join("braid"));
        let shelf = Shelf {
            folder: folder.clone(),
        };
        assert_eq!(shelf.read(), Ok(None));
        shelf.write("look = \"dark\"\n").expect("written");
        shelf.write("look = \"light\"\n").expect("written again");
        let next = Shelf { folder };
        assert_eq!(next.read(), Ok(Some("look = \"light\"\n".into())));
    }

    #[test]
    fn what_is_in_the_way_is_named() {
        let root = tempfile::tempdir().expect("a folder");
        let file = root.path().join("file");
        fs::write(&file, "no folder").expect("a file");
        let shelf = Shelf {
            folder: Some(file.join("braid")),
        };
        let message = shelf.write("text").expect_err("a file is in the way");
        assert!(message.contains("braid cannot be made"), "{message}");
        let shelf = Shelf { folder: None };
        let message = shelf.write("text").expect_err("nowhere");
        assert!(message.contains("XDG_CONFIG_HOME"), "{message}");
    }
}
