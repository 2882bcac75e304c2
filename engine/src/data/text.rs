//! A text file as training data: read, cleaned, encoded, and split by position.

use crate::data::batches::{BatchShape, Draw, EvalBatch, Fingerprint};
use crate::data::tokenizer::{Bpe, Characters, Tokenizer, TokenizerKind};
use crate::error::{Error, Result};
use crate::random;

/// An encoded text. Its last part is for validation.
#[derive(Clone, Debug)]
pub struct TextDataset {
    tokenizer: Tokenizer,
    ids: Vec<u16>,
    train: usize,
    val_fraction: f64,
    notices: Vec<String>,
}

/// How to read a text.
#[derive(Clone, Debug)]
pub struct TextOptions<'a> {
    /// What to call the file in messages.
    pub name: &'a str,
    /// Which tokenizer to make; not read if `vocabulary` is given.
    pub tokenizer: TokenizerKind,
    /// The tokenizer of an earlier run on this text.
    pub vocabulary: Option<&'a Tokenizer>,
    /// Part of the tokens, at the end, that is for validation.
    pub val_fraction: f64,
    /// Tokens of a window, `model.context`: both parts must be longer.
    pub context: usize,
}

impl TextDataset {
    /// Read a file's bytes.
    ///
    /// A byte order mark is dropped and Windows line ends become `\n`, if the file is text; both are reported in
    /// [`TextDataset::notices`]. Bytes that are no text are taken as they are by the byte and BPE tokenizers, with a notice.
    ///
    /// # Errors
    /// If the file is empty, too short for the context, UTF-16, or, for the character tokenizer, no UTF-8; with
    /// `vocabulary`, if the text has characters that the vocabulary lacks; for BPE, as [`Bpe::train`].
    pub fn new(bytes: &[u8], options: &TextOptions<'_>) -> Result<Self> {
        Self::with_progress(bytes, options, &mut |_, _| ())
    }

    /// [`TextDataset::new`]; `progress` hears of merges that a BPE tokenizer has learnt, and merges in all.
    ///
    /// # Errors
    /// As there.
    pub fn with_progress(
        bytes: &[u8],
        options: &TextOptions<'_>,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Self> {
        let TextOptions {
            name,
            val_fraction,
            context,
            ..
        } = *options;
        let mut notices = Vec::new();
        let cleaned = clean(bytes, options, &mut notices)?;
        let (tokenizer, ids) = encode(&cleaned, options, progress)?;
        let split = |tokens: usize| (tokens as f64 * (1.0 - val_fraction)) as usize;
        let (total, train) = (ids.len(), split(ids.len()));
        let needed = context + 1;
        if train < needed || total - train < needed {
            // The smallest length at which both parts suffice; the split rounds, so look for it.
            let enough = (2 * needed..)
                .find(|&tokens| split(tokens) >= needed && tokens - split(tokens) >= needed)
                .unwrap_or(usize::MAX);
            return Err(Error::File(format!(
                "{name} is too short: it has {total} tokens, of which data.val_fraction = {val_fraction} leaves {train} for \
                 training and {} for validation; model.context = {context} needs {needed} in each. Give a text of at least \
                 {enough} tokens, or lower model.context",
                total - train
            )));
        }
        Ok(Self {
            tokenizer,
            ids,
            train,
            val_fraction,
            notices,
        })
    }

    /// Its tokenizer.
    #[must_use]
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Sentences about what was changed or found while reading, to be shown.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Tokens for training and for validation.
    #[must_use]
    pub fn parts(&self) -> (usize, usize) {
        (self.train, self.ids.len() - self.train)
    }

    /// The tokens for validation.
    pub fn validation(&self) -> impl Iterator<Item = u32> + '_ {
        self.ids[self.train..].iter().map(|&id| u32::from(id))
    }

    /// Windows at random places of the training part.
    pub(super) fn train_batch(
        &self,
        draw: Draw,
        shape: BatchShape,
        ids: &mut Vec<u32>,
        labels: &mut Vec<u32>,
    ) {
        let mut rng = random::stream(draw.seed, &draw.label());
        for _ in 0..shape.batch {
            // The window's last label is its start + context: the last start leaves room for it.
            let start = random::below(&mut rng, self.train - shape.context);
            let window = &self.ids[start..=start + shape.context];
            ids.extend(window[..shape.context].iter().map(|&id| u32::from(id)));
            labels.extend(window[1..].iter().map(|&id| u32::from(id)));
        }
    }

    /// Windows that follow one another: every token but the first is a label once.
    pub(super) fn eval_windows(&self, context: usize) -> usize {
        (self.ids.len() - self.train - 1).div_ceil(context)
    }

    /// Batch `index` of the validation part. The last window may be shorter; padding follows it.
    pub(super) fn eval_batch(&self, index: usize, shape: BatchShape) -> EvalBatch {
        let part = &self.ids[self.train..];
        let start = (index * shape.rows()).min(part.len() - 1);
        let counted = (part.len() - 1 - start).min(shape.rows());
        let take = |offset: usize| {
            let mut tokens: Vec<u32> = part[start + offset..start + offset + counted]
                .iter()
                .map(|&id| u32::from(id))
                .collect();
            tokens.resize(shape.rows(), 0);
            tokens
        };
        EvalBatch {
            ids: take(0),
            labels: take(1),
            counted,
            answers: Vec::new(),
        }
    }

    /// The same for the same tokens, vocabulary and split.
    pub(super) fn fingerprint(&self) -> String {
        let mut hash = Fingerprint::new()
            .add(self.tokenizer.to_json().as_bytes())
            .add(&self.val_fraction.to_le_bytes());
        for id in &self.ids {
            hash = hash.add(&id.to_le_bytes());
        }
        hash.text()
    }
}

/// The content of a file after cleaning.
enum Content {
    Text(String),
    Bytes(Vec<u8>),
}

fn clean(bytes: &[u8], options: &TextOptions<'_>, notices: &mut Vec<String>) -> Result<Content> {
    let name = options.name;
    let bytes_wanted = match options.vocabulary {
        Some(tokenizer) => !matches!(tokenizer, Tokenizer::Char(_)),
        None => options.tokenizer != TokenizerKind::Char,
    };
    if bytes.is_empty() {
        return Err(Error::File(format!(
            "{name} is empty; give a text of at least a few thousand characters"
        )));
    }
    if looks_like_utf16(bytes) {
        return Err(Error::File(format!(
            "{name} is UTF-16 text; convert it to UTF-8 first, for example with `iconv -f UTF-16 -t UTF-8`"
        )));
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if bytes_wanted => {
            notices.push(format!(
                "{name} is not UTF-8 text (byte {}): training on its bytes as they are",
                error.valid_up_to()
            ));
            return Ok(Content::Bytes(bytes.to_vec()));
        }
        Err(error) => {
            return Err(Error::File(format!(
                "{name} is not UTF-8 text (byte {} is {:#04x}), which data.tokenizer = \"char\" needs; convert it to UTF-8, or \
                 use data.tokenizer = \"byte\" or \"bpe\", which take any file",
                error.valid_up_to(),
                bytes[error.valid_up_to()]
            )));
        }
    };
    if let Some(position) = bytes.iter().position(|&byte| byte == 0) {
        notices.push(format!(
            "{name} has a NUL at byte {position}: it may be no text; it is used as it is"
        ));
        return Ok(Content::Text(text.into()));
    }
    let mut text = text;
    if let Some(rest) = text.strip_prefix('\u{feff}') {
        notices.push(format!("{name}: the byte order mark was dropped"));
        text = rest;
        if text.is_empty() {
            return Err(Error::File(format!(
                "{name} is empty but for a byte order mark"
            )));
        }
    }
    if text.contains("\r\n") {
        notices.push(format!("{name}: Windows line ends (CR LF) were read as LF"));
        return Ok(Content::Text(text.replace("\r\n", "\n")));
    }
    Ok(Content::Text(text.into()))
}

/// A byte order mark of UTF-16 (or UTF-32), or ASCII with a NUL beside every character.
fn looks_like_utf16(bytes: &[u8]) -> bool {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return true;
    }
    let pairs = &bytes[..bytes.len().min(4096) / 2 * 2];
    let pairs = pairs.as_chunks::<2>().0;
    let plain = |byte: u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    let wide = |zero: usize| {
        let count = pairs
            .iter()
            .filter(|pair| pair[zero] == 0 && plain(pair[1 - zero]))
            .count();
        pairs.len() >= 4 && count * 10 >= pairs.len() * 8
    };
    wide(0) || wide(1)
}

fn encode(
    content: &Content,
    options: &TextOptions<'_>,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<(Tokenizer, Vec<u16>)> {
    let name = options.name;
    let short = |id: u32| u16::try_from(id).expect("a vocabulary has at most 65,536 tokens");
    let bytes = match content {
        Content::Text(text) => text.as_bytes(),
        Content::Bytes(bytes) => bytes,
    };
    let tokenizer = match (options.vocabulary, content) {
        (Some(tokenizer), _) => tokenizer.clone(),
        (None, _) if let TokenizerKind::Bpe(size) = options.tokenizer => {
            // What is for validation has no part in the vocabulary.
            let train = (bytes.len() as f64 * (1.0 - options.val_fraction)) as usize;
            Tokenizer::Bpe(Bpe::train(&bytes[..train], size, progress)?)
        }
        (None, Content::Text(text)) if options.tokenizer == TokenizerKind::Char => Tokenizer::Char(
            Characters::of(text).map_err(|error| Error::File(format!("{name}: {error}")))?,
        ),
        _ => Tokenizer::Byte,
    };
    let ids = match (&tokenizer, content) {
        (Tokenizer::Byte, _) => bytes.iter().map(|&b| u16::from(b)).collect(),
        (Tokenizer::Bpe(bpe), _) => bpe.encode(bytes).into_iter().map(short).collect(),
        (Tokenizer::Char(characters), Content::Text(text)) => {
            let mut ids = Vec::with_capacity(text.len());
            for character in text.chars() {
                let token = characters.token(character).ok_or_else(|| {
                    Error::File(format!(
                        "{name} has the character `{}`, which the run's vocabulary lacks; give the text that the run was \
                         started with",
                        character.escape_debug()
                    ))
                })?;
                ids.push(short(token));
            }
            ids
        }
        (tokenizer, _) => {
            return Err(Error::File(format!(
                "{name}: a `{}` vocabulary cannot encode this file",
                tokenizer.kind()
            )));
        }
    };
    Ok((tokenizer, ids))
}
