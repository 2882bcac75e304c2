//! Tokenizers: text to token numbers and back.
//!
//! Three kinds: bytes (any file, 256 tokens), characters (the distinct characters of one text), and words (the vocabulary of
//! a built-in task). A tokenizer is stored with its run as `tokenizer.json`; encoding never fails: what the vocabulary lacks
//! is replaced and reported.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The most tokens that a vocabulary can have: token numbers of texts are kept in 16 bits.
pub const MAX_VOCABULARY: usize = 1 << 16;

/// How text becomes token numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
#[non_exhaustive]
pub enum Tokenizer {
    /// Token = byte.
    Byte,
    /// Token = character.
    Char(Characters),
    /// Token = word, separated by blanks.
    Words(Words),
}

/// Which tokenizer to make for a text: `data.tokenizer` of the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TokenizerKind {
    /// 256 tokens, any file.
    #[default]
    Byte,
    /// One token for each distinct character of the text.
    Char,
}

/// Distinct characters in ascending order; the position is the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Characters {
    sorted: Vec<char>,
    replacement: u32,
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

    fn new(sorted: Vec<char>) -> Result<Self> {
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

/// A list of words; the position is the token. Word 0 stands for "nothing": it ends an answer and replaces unknown words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    list: Vec<String>,
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
    fn longest(&self, text: &str) -> Option<(usize, &str)> {
        self.list
            .iter()
            .enumerate()
            .filter(|(_, word)| text.starts_with(word.as_str()))
            .max_by_key(|(_, word)| word.len())
            .map(|(token, word)| (token, word.as_str()))
    }
}

/// `tokenizer.json`.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Stored {
    Byte {},
    /// All characters in ascending order, as one string.
    Char {
        characters: String,
    },
    Words {
        words: Vec<String>,
    },
}

impl From<Tokenizer> for Stored {
    fn from(tokenizer: Tokenizer) -> Self {
        match tokenizer {
            Tokenizer::Byte => Self::Byte {},
            Tokenizer::Char(characters) => Self::Char {
                characters: characters.sorted.iter().collect(),
            },
            Tokenizer::Words(words) => Self::Words { words: words.list },
        }
    }
}

impl TryFrom<Stored> for Tokenizer {
    type Error = Error;

    fn try_from(stored: Stored) -> Result<Self> {
        Ok(match stored {
            Stored::Byte {} => Self::Byte,
            Stored::Char { characters } => {
                Self::Char(Characters::new(characters.chars().collect())?)
            }
            Stored::Words { words } => Self::Words(Words::new(words)?),
        })
    }
}

/// Encoded text, and what had to be replaced in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// Token numbers, all below the vocabulary's size.
    pub ids: Vec<u32>,
    /// What the vocabulary lacks, each once, in order of appearance.
    pub replaced: Vec<String>,
    /// A sentence about the replacements, to be shown; `None` if there were none.
    pub notice: Option<String>,
}

impl Tokenizer {
    /// Number of tokens.
    #[must_use]
    pub fn vocab_size(&self) -> u32 {
        match self {
            Self::Byte => 256,
            Self::Char(characters) => characters.sorted.len() as u32,
            Self::Words(words) => words.list.len() as u32,
        }
    }

    /// For people: `byte`, `char`, `words`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Byte => "byte",
            Self::Char(_) => "char",
            Self::Words(_) => "words",
        }
    }

    /// The token that ends an answer, where there is one: a sample stops there.
    #[must_use]
    pub fn stop(&self) -> Option<u32> {
        match self {
            Self::Byte | Self::Char(_) => None,
            Self::Words(_) => Some(0),
        }
    }

    /// Encode a prompt. What the vocabulary lacks is replaced (by a blank, a line break or the first character; by word 0)
    /// and reported.
    #[must_use]
    pub fn encode(&self, text: &str) -> Encoded {
        let mut encoded = Encoded::default();
        let (mut ids, mut missing, mut count) = (Vec::new(), Vec::<String>::new(), 0_usize);
        let mut lack = |what: &str| {
            count += 1;
            if !missing.iter().any(|known| known == what) {
                missing.push(what.into());
            }
        };
        match self {
            Self::Byte => ids.extend(text.bytes().map(u32::from)),
            Self::Char(characters) => ids.extend(text.chars().map(|character| {
                characters.token(character).unwrap_or_else(|| {
                    lack(&character.to_string());
                    characters.replacement
                })
            })),
            Self::Words(words) => {
                for chunk in text.split_whitespace() {
                    let mut rest = chunk;
                    while !rest.is_empty() {
                        // `3+5=` may be written for `3+ 5=`: no blank is needed where the longest match is what is meant.
                        if let Some((token, word)) = words.longest(rest) {
                            ids.push(token as u32);
                            rest = &rest[word.len()..];
                        } else {
                            lack(rest);
                            ids.push(0);
                            rest = "";
                        }
                    }
                }
            }
        }
        if count > 0 {
            let shown: Vec<String> = missing
                .iter()
                .take(8)
                .map(|what| format!("`{}`", what.escape_debug()))
                .collect();
            let replacement = match self {
                Self::Char(characters) => self.token_text(characters.replacement),
                _ => self.token_text(0),
            };
            encoded.notice = Some(format!(
                "the model's vocabulary lacks {}{}; replaced by `{replacement}` ({count} {})",
                shown.join(", "),
                if missing.len() > 8 { ", .." } else { "" },
                if count == 1 { "place" } else { "places" },
            ));
        }
        encoded.ids = ids;
        encoded.replaced = missing;
        encoded
    }

    /// Text of the tokens. Bytes that are not UTF-8 become replacement characters, unknown token numbers are skipped.
    #[must_use]
    pub fn decode(&self, ids: &[u32]) -> String {
        let mut decoder = StreamDecoder::new(self);
        let mut text: String = ids.iter().map(|&id| decoder.push(id)).collect();
        text.push_str(&decoder.finish());
        text
    }

    /// One token for display: line breaks and other invisible characters are escaped, lone bytes printed as `0xff`.
    #[must_use]
    pub fn token_text(&self, id: u32) -> String {
        match self {
            Self::Byte => match u8::try_from(id) {
                Ok(byte) if byte.is_ascii() => char::from(byte).escape_debug().to_string(),
                _ => format!("{id:#04x}"),
            },
            Self::Char(characters) => characters
                .sorted
                .get(id as usize)
                .map_or_else(|| format!("#{id}"), |c| c.escape_debug().to_string()),
            Self::Words(words) => words
                .list
                .get(id as usize)
                .cloned()
                .unwrap_or_else(|| format!("#{id}")),
        }
    }

    /// Read a `tokenizer.json`.
    ///
    /// # Errors
    /// If it is not one.
    pub fn from_json(text: &str) -> Result<Self> {
        serde_json::from_str(text)
            .map_err(|error| Error::File(format!("tokenizer.json cannot be used: {error}")))
    }

    /// The text of a `tokenizer.json`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text =
            serde_json::to_string_pretty(self).expect("strings and lists of strings are JSON");
        text.push('\n');
        text
    }
}

/// Decodes token by token, as a sample grows: a character of several bytes comes out when its last byte has come in.
#[derive(Clone, Debug)]
pub struct StreamDecoder<'a> {
    tokenizer: &'a Tokenizer,
    pending: Vec<u8>,
    started: bool,
}

impl<'a> StreamDecoder<'a> {
    /// A decoder at the start of a text.
    #[must_use]
    pub fn new(tokenizer: &'a Tokenizer) -> Self {
        Self {
            tokenizer,
            pending: Vec::new(),
            started: false,
        }
    }

    /// The text that this token completes; often empty for bytes.
    pub fn push(&mut self, id: u32) -> String {
        match self.tokenizer {
            Tokenizer::Byte => {
                self.pending.extend(u8::try_from(id).ok());
                self.complete()
            }
            Tokenizer::Char(characters) => characters
                .sorted
                .get(id as usize)
                .map(char::to_string)
                .unwrap_or_default(),
            Tokenizer::Words(words) => words
                .list
                .get(id as usize)
                .map(|word| {
                    let blank = if std::mem::replace(&mut self.started, true) {
                        " "
                    } else {
                        ""
                    };
                    format!("{blank}{word}")
                })
                .unwrap_or_default(),
        }
    }

    /// What is left of an unfinished character, as a replacement character.
    pub fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned()
    }

    /// Take everything out of `pending` that later bytes cannot change.
    fn complete(&mut self) -> String {
        let mut text = String::new();
        loop {
            match std::str::from_utf8(&self.pending) {
                Ok(valid) => {
                    text.push_str(valid);
                    self.pending.clear();
                    return text;
                }
                Err(error) => {
                    let valid = error.valid_up_to();
                    text.push_str(&String::from_utf8_lossy(&self.pending[..valid]));
                    let Some(wrong) = error.error_len() else {
                        self.pending.drain(..valid);
                        return text; // the start of a character: wait
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    self.pending.drain(..valid + wrong);
                }
            }
        }
    }
}
