//! Tokenizers: text to token numbers and back.
//!
//! Four kinds: bytes (any file, 256 tokens), characters (the distinct characters of one text), byte pairs (merges learnt from
//! a text, any file), and words (the vocabulary of a built-in task). A tokenizer is stored with its run as `tokenizer.json`;
//! encoding never fails: what the vocabulary lacks is replaced and reported.

mod bpe;
mod char;
mod stream;
mod words;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

pub use bpe::{Bpe, TRAINED_SIZES};
pub use char::Characters;
pub use stream::StreamDecoder;
pub use words::Words;

/// The most tokens that a vocabulary can have: token numbers of texts are kept in 16 bits.
pub const MAX_VOCABULARY: usize = 1 << 16;

/// How text becomes token numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tokenizer {
    /// Token = byte.
    Byte,
    /// Token = character.
    Char(Characters),
    /// Token = byte, or a merge of two tokens.
    Bpe(Bpe),
    /// Token = word, separated by blanks.
    Words(Words),
}

/// Which tokenizer to make for a text: `data.tokenizer` of the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenizerKind {
    /// 256 tokens, any file.
    #[default]
    Byte,
    /// One token for each distinct character of the text.
    Char,
    /// So many tokens, learnt from the part of the text that is for training.
    Bpe(u32),
}

/// `tokenizer.json` of the kinds that no other program knows.
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
            Self::Bpe(bpe) => bpe.size(),
            Self::Words(words) => words.list.len() as u32,
        }
    }

    /// For people: `byte`, `char`, `bpe`, `words`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Byte => "byte",
            Self::Char(_) => "char",
            Self::Bpe(_) => "bpe",
            Self::Words(_) => "words",
        }
    }

    /// The token that ends an answer, where there is one: a sample stops there.
    #[must_use]
    pub fn stop(&self) -> Option<u32> {
        match self {
            Self::Byte | Self::Char(_) | Self::Bpe(_) => None,
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
            Self::Bpe(bpe) => ids = bpe.encode(text.as_bytes()),
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
            Self::Bpe(bpe) => match bpe.token(id) {
                [] => format!("#{id}"),
                bytes => visible(bytes),
            },
            Self::Words(words) => words
                .list
                .get(id as usize)
                .cloned()
                .unwrap_or_else(|| format!("#{id}")),
        }
    }

    /// Bytes of text that a token stands for; `None` where tokens are no part of a file.
    #[must_use]
    pub fn token_bytes(&self, id: u32) -> Option<usize> {
        match self {
            Self::Byte => Some(1),
            Self::Char(characters) => characters.sorted.get(id as usize).map(|c| c.len_utf8()),
            Self::Bpe(bpe) => Some(bpe.token(id).len()),
            Self::Words(_) => None,
        }
    }

    /// Read a `tokenizer.json`: one of ours, or one of the `tokenizers` library, which has a `model` and no `kind`.
    ///
    /// # Errors
    /// If it is not one, or is none that can be used ([`Bpe::from_json`]).
    pub fn from_json(text: &str) -> Result<Self> {
        let read = || -> Result<Self> {
            let value: serde_json::Value = serde_json::from_str(text).map_err(reason)?;
            if value.get("model").is_some() && value.get("kind").is_none() {
                return Ok(Self::Bpe(Bpe::from_json(text)?));
            }
            serde_json::from_value::<Stored>(value)
                .map_err(reason)?
                .try_into()
        };
        read().map_err(|error| Error::File(format!("tokenizer.json cannot be used: {error}")))
    }

    /// The text of a `tokenizer.json`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let stored = match self {
            Self::Byte => Stored::Byte {},
            Self::Char(characters) => Stored::Char {
                characters: characters.sorted.iter().collect(),
            },
            Self::Words(words) => Stored::Words {
                words: words.list.clone(),
            },
            Self::Bpe(bpe) => return bpe.to_json().into(),
        };
        let mut text =
            serde_json::to_string_pretty(&stored).expect("strings and lists of strings are JSON");
        text.push('\n');
        text
    }
}

fn reason(error: serde_json::Error) -> Error {
    Error::File(error.to_string())
}

/// Bytes for display: text with invisible characters escaped, other bytes as `0xff`.
fn visible(bytes: &[u8]) -> String {
    let mut shown = String::new();
    for chunk in bytes.utf8_chunks() {
        shown.extend(chunk.valid().chars().flat_map(char::escape_debug));
        for byte in chunk.invalid() {
            shown.push_str(&format!("{byte:#04x}"));
        }
    }
    shown
}
