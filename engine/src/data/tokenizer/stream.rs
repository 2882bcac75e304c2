//! Token numbers to text, one after another.

use super::Tokenizer;

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

    /// The text that this token completes; often empty for bytes and parts of words.
    pub fn push(&mut self, id: u32) -> String {
        match self.tokenizer {
            Tokenizer::Byte => {
                self.pending.extend(u8::try_from(id).ok());
                self.complete()
            }
            Tokenizer::Bpe(bpe) => {
                self.pending.extend_from_slice(bpe.token(id));
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
