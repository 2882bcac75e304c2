//! Token = character.

use super::MAX_VOCABULARY;
use crate::error::{Error, Result};

/// Distinct characters in ascending order; the position is the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Characters {
    pub(super) sorted: Vec<char>,
    /// The token that stands for characters outside of the vocabulary.
    pub(super) replacement: u32,
}

impl Characters {
    /// The distinct characters of `text`.
    ///
    /// # Errors
    /// If there are none, or more than [`MAX_VOCABULARY`].
    pub fn of(text: &str) -> Result<Self> {
        let mut sorted: Vec<char> = text
            .chars()
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect();
        sorted.shrink_to_fit();
        Self::new(sorted)
    }

    pub(super) fn new(sorted: Vec<char>) -> Result<Self> {
        if sorted.is_empty() || sorted.len() > MAX_VOCABULARY {
            return Err(Error::File(format!(
                "a character vocabulary needs between 1 and {MAX_VOCABULARY} characters, this one has {}",
                sorted.len()
            )));
        }
        if !sorted.windows(2).all(|pair| pair[0] < pair[1]) {
            return Err(Error::File(
                "the characters of the vocabulary are not in ascending order, each once".into(),
            ));
        }
        // A text need not contain a blank, nor a line break.
        let replacement = [' ', '\n']
            .iter()
            .find_map(|wanted| sorted.binary_search(wanted).ok())
            .unwrap_or(0) as u32;
        Ok(Self {
            sorted,
            replacement,
        })
    }

    /// The token of a character.
    #[must_use]
    pub fn token(&self, character: char) -> Option<u32> {
        self.sorted
            .binary_search(&character)
            .ok()
            .map(|position| position as u32)
    }
}
