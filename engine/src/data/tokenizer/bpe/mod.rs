//! Byte-level byte pair encoding, through the `tokenizers` crate.
//!
//! Every byte is a token, and merges of tokens are further tokens, so any bytes can be encoded and come back the same.
//! `tokenizers` encodes text only: bytes that are no UTF-8 are cut out and encoded between the texts around them. On UTF-8,
//! the tokens are those that any other program finds with the same `tokenizer.json`, except at a cut where a long text has no
//! line end for 1 MiB ([`Bpe::encode`]).
//!
//! Byte pair encoding for words: Sennrich, Haddow, Birch 2016, <https://arxiv.org/abs/1508.07909>; on bytes, with this
//! cutting into words: GPT-2.

mod alphabet;
mod cut;
mod file;
mod train;

use std::sync::Arc;

use tokenizers::models::bpe::BPE;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::tokenizer::Model;

use crate::error::{Error, Result};
use cut::{Run, pieces, runs};

/// Vocabularies that [`Bpe::train`] makes.
pub const TRAINED_SIZES: std::ops::RangeInclusive<u32> = 256..=32_768;

/// A byte-level vocabulary with its merges. Cheap to clone.
#[derive(Clone)]
pub struct Bpe(Arc<Inner>);

struct Inner {
    tokenizer: tokenizers::Tokenizer,
    /// `tokenizer.json`.
    json: String,
    /// What every token stands for; empty for numbers that the vocabulary leaves out.
    tokens: Vec<Vec<u8>>,
    /// The token of every byte.
    bytes: [u32; 256],
}

impl std::fmt::Debug for Bpe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bpe")
            .field("tokens", &self.0.tokens.len())
            .finish_non_exhaustive()
    }
}

impl PartialEq for Bpe {
    fn eq(&self, other: &Self) -> bool {
        self.0.json == other.0.json
    }
}

impl Eq for Bpe {}

/// What the crate says, as our error. It gives reasons of many types.
fn reason(error: impl std::fmt::Display) -> Error {
    Error::File(error.to_string())
}

impl Bpe {
    /// Learn a vocabulary of exactly `size` tokens from a text, or from any bytes. The same bytes give the same vocabulary.
    ///
    /// `progress` hears of steps done and steps in all. A text of more than 256 MiB is read up to there.
    ///
    /// # Errors
    /// If `size` is outside of [`TRAINED_SIZES`], or there are too few pairs that occur twice.
    pub fn train(bytes: &[u8], size: u32, progress: &mut dyn FnMut(usize, usize)) -> Result<Self> {
        if !TRAINED_SIZES.contains(&size) {
            return Err(Error::config(
                "data.vocab",
                format!(
                    "is {size}; it must be between {} and {}",
                    TRAINED_SIZES.start(),
                    TRAINED_SIZES.end()
                ),
            ));
        }
        let learnt = train::learn(bytes, size as usize, progress)?;
        let found = 256 + learnt.new_tokens;
        if found < size as usize {
            return Err(Error::config(
                "data.vocab",
                format!(
                    "is {size}, but the text yields {found} tokens: then no pair of them occurs twice. Lower it to at most \
                     {found}, or give a longer text"
                ),
            ));
        }
        let model = BPE::builder()
            .vocab_and_merges(learnt.vocabulary, learnt.merges)
            .build()
            .map_err(reason)?;
        let bytes = ByteLevel::new(false, false, true);
        let mut tokenizer = tokenizers::Tokenizer::new(model);
        tokenizer
            .with_pre_tokenizer(Some(bytes))
            .with_decoder(Some(bytes));
        Self::of(tokenizer)
    }

    /// Read a `tokenizer.json` of the `tokenizers` library.
    ///
    /// Cutting to a length and padding are switched off, and tokens that the file adds at the ends of a text are left out:
    /// a text's tokens are those of the text.
    ///
    /// # Errors
    /// If it is no byte-level BPE from which any bytes come back the same, or has more than 65,536 tokens.
    pub fn from_json(text: &str) -> Result<Self> {
        Self::of(file::read(text)?)
    }

    fn of(tokenizer: tokenizers::Tokenizer) -> Result<Self> {
        let tokens = file::tokens(&tokenizer)?;
        let mut bytes = [0; 256];
        for (byte, id) in (0_u8..=255).zip(&mut bytes) {
            // Not among the added tokens: only those of the model encode what no pattern finds.
            let found = tokenizer.get_model().token_to_id(&alphabet::text(&[byte]));
            *id = found.ok_or_else(|| {
                Error::File(format!(
                    "its vocabulary has no token for the byte {byte:#04x}; a byte-level vocabulary has one for each of the 256"
                ))
            })?;
        }
        let json = tokenizer.to_string(true).map_err(reason)? + "\n";
        Ok(Self(Arc::new(Inner {
            tokenizer,
            json,
            tokens,
            bytes,
        })))
    }

    /// The text of its `tokenizer.json`, which other programs can load.
    #[must_use]
    pub fn to_json(&self) -> &str {
        &self.0.json
    }

    /// Number of tokens: the largest token number and one.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.0.tokens.len() as u32
    }

    /// The bytes of a token; none for a number outside of the vocabulary.
    #[must_use]
    pub fn token(&self, id: u32) -> &[u8] {
        self.0
            .tokens
            .get(id as usize)
            .map_or(&[], |bytes| bytes.as_slice())
    }

    /// Tokens of any bytes.
    ///
    /// Long texts are encoded in parts of 1 to 2 MiB that end with a line, where the word before does not depend on the word
    /// after. Where a text has no such line end for 1 MiB, it is cut between any two characters, and tokens beside the cut
    /// may be others than those of the whole text.
    #[must_use]
    pub fn encode(&self, bytes: &[u8]) -> Vec<u32> {
        let mut ids = Vec::new();
        for run in pieces(bytes).flat_map(runs) {
            match run {
                Run::Text(text) => self.encode_text(text, &mut ids),
                Run::Bytes(bytes) => self.encode_word(bytes, &mut ids),
            }
        }
        ids
    }

    fn encode_text(&self, text: &str, ids: &mut Vec<u32>) {
        match self.0.tokenizer.encode_fast(text, false) {
            Ok(encoding) => ids.extend_from_slice(encoding.get_ids()),
            // A pattern may be too hard for the text; the text is encoded all the same.
            Err(_) => self.encode_word(text.as_bytes(), ids),
        }
    }

    /// Tokens of bytes that are not to be cut into words.
    fn encode_word(&self, bytes: &[u8], ids: &mut Vec<u32>) {
        match self
            .0
            .tokenizer
            .get_model()
            .tokenize(&alphabet::text(bytes))
        {
            Ok(tokens) => ids.extend(tokens.iter().map(|token| token.id)),
            Err(_) => ids.extend(bytes.iter().map(|&byte| self.0.bytes[usize::from(byte)])),
        }
    }
}
