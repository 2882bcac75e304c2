//! Token = word: the vocabulary of a built-in task.

use super::MAX_VOCABULARY;
use crate::error::{Error, Result};

/// A list of words; the position is the token. Word 0 stands for "nothing": it ends an answer and replaces unknown words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    pub(super) list: Vec<String>,
}

impl Words {
    /// A vocabulary of these words.
    ///
    /// # Errors
    /// If there are none or too many, or a word is empty, holds a blank, or stands there twice.
    pub fn new(list: Vec<String>) -> Result<Self> {
        if list.is_empty() || list.len() > MAX_VOCABULARY {
            return Err(Error::File(format!(
                "a word vocabulary needs between 1 and {MAX_VOCABULARY} words, this one has {}",
                list.len()
            )));
        }
        let mut seen = std::collections::HashSet::new();
        for word in &list {
            if word.is_empty() || word.contains(char::is_whitespace) || !seen.insert(word) {
                return Err(Error::File(format!(
                    "`{}` cannot be a word of the vocabulary: empty, with a blank in it, or twice",
                    word.escape_debug()
                )));
            }
        }
        Ok(Self { list })
    }

    /// The longest word that `text` starts with.
    pub(super) fn longest(&self, text: &str) -> Option<(usize, &str)> {
        self.list
            .iter()
            .enumerate()
            .filter(|(_, word)| text.starts_with(word.as_str()))
            .max_by_key(|(_, word)| word.len())
            .map(|(token, word)| (token, word.as_str()))
    }
}
