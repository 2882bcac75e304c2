//! The data of a configuration, from the files that it names.

use std::path::Path;

use braid_engine::data::{Bpe, Dataset, Tokenizer};
use braid_engine::{Error, Result};

use crate::config::RunConfig;
use crate::run_dir::{read_bytes, read_text};

/// The data of a run. `text` stands for the content of `data.file` where that is not a file of this machine; `vocabulary` is
/// the tokenizer of a run that goes on. `progress` hears of merges that BPE has learnt, and merges in all.
///
/// # Errors
/// If a file cannot be read, or its content cannot be used.
pub fn dataset(
    config: &RunConfig,
    text: Option<&[u8]>,
    vocabulary: Option<&Tokenizer>,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Dataset> {
    let read = match (&config.data.file, text) {
        (Some(file), None) => read_bytes(Path::new(file))?,
        _ => Vec::new(),
    };
    let named = match (vocabulary, &config.data.tokenizer_file) {
        (None, Some(file)) => Some(tokenizer_of(Path::new(file))?),
        _ => None,
    };
    config.dataset(
        text.unwrap_or(&read),
        vocabulary.or(named.as_ref()),
        progress,
    )
}

/// `data.tokenizer_file`
fn tokenizer_of(file: &Path) -> Result<Tokenizer> {
    let bpe = Bpe::from_json(&read_text(file)?).map_err(|error| {
        let file = file.display();
        Error::File(format!("data.tokenizer_file {file}: {error}"))
    })?;
    Ok(Tokenizer::Bpe(bpe))
}

/// Name the files of a configuration by their whole paths: a run may go on from another folder.
#[cfg(not(target_arch = "wasm32"))]
pub fn name_files_fully(config: &mut RunConfig) {
    let files = [&mut config.data.file, &mut config.data.tokenizer_file];
    for file in files.into_iter().flatten() {
        if let Ok(path) = std::path::absolute(&*file) {
            *file = path.to_string_lossy().into_owned();
        }
    }
}
