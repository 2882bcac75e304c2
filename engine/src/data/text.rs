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
    /// Part at the end that is for validation: of the tokens, and with byte pairs of the bytes, so that no token reaches
    /// over the cut and the vocabulary is learnt from just what is trained on.
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
        let Encoded {
            tokenizer,
            ids,
            train,
        } = encode(&cleaned, options, progress)?;
        let total = ids.len();
        let needed = context + 1;
        if train < needed || total - train < needed {
            let advice = if matches!(tokenizer, Tokenizer::Bpe(_)) {
                // How many tokens a longer text would have is not known.
                "a longer text".to_owned()
            } else {
                // The smallest length at which both parts suffice; the split rounds, so look for it.
                let enough = (2 * needed..).find(|&tokens| {
                    let train = train_part(tokens, val_fraction);
                    train >= needed && tokens - train >= needed
                });
                format!("a text of at least {} tokens", enough.unwrap_or(usize::MAX))
            };
            return Err(Error::File(format!(
                "{name} is too short: it has {total} tokens, of which data.val_fraction = {val_fraction} leaves {train} for \
                 training and {} for validation; model.context = {context} needs {needed} in each. Give {advice}, or lower \
                 model.context",
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

/// How many of `length` tokens or bytes are for training.
fn train_part(length: usize, val_fraction: f64) -> usize {
    (length as f64 * (1.0 - val_fraction)) as usize
}

/// A text as tokens; the first `train` are for training.
struct Encoded {
    tokenizer: Tokenizer,
    ids: Vec<u16>,
    train: usize,
}

fn encode(
    content: &Content,
    options: &TextOptions<'_>,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Encoded> {
    let name = options.name;
    let short = |id: u32| u16::try_from(id).expect("a vocabulary has at most 65,536 tokens");
    let bytes = match content {
        Content::Text(text) => text.as_bytes(),
        Content::Bytes(bytes) => bytes,
    };
    // Byte pairs are learnt from what stands before this, and none of them reaches over it.
    let cut = train_part(bytes.len(), options.val_fraction);
    let cut = match content {
        Content::Text(text) => text.floor_char_boundary(cut),
        Content::Bytes(_) => cut,
    };
    let tokenizer = match (options.vocabulary, content) {
        (Some(tokenizer), _) => tokenizer.clone(),
        (None, _) if let TokenizerKind::Bpe(size) = options.tokenizer => {
            Tokenizer::Bpe(Bpe::train(&bytes[..cut], size, progress)?)
        }
        (None, Content::Text(text)) if options.tokenizer == TokenizerKind::Char => Tokenizer::Char(
            Characters::of(text).map_err(|error| Error::File(format!("{name}: {error}")))?,
        ),
        _ => Tokenizer::Byte,
    };
    let ids: Vec<u16> = match (&tokenizer, content) {
        (Tokenizer::Byte, _) => bytes.iter().map(|&b| u16::from(b)).collect(),
        (Tokenizer::Bpe(bpe), _) => {
            let (train, validation) = bytes.split_at(cut);
            let mut ids: Vec<u16> = bpe.encode(train).into_iter().map(short).collect();
            let train = ids.len();
            ids.extend(bpe.encode(validation).into_iter().map(short));
            return Ok(Encoded {
                tokenizer,
                ids,
                train,
            });
        }
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
    let train = train_part(ids.len(), options.val_fraction);
    Ok(Encoded {
        tokenizer,
        ids,
        train,
    })
}
