//! Training data: texts and built-in tasks, and the batches drawn from them.
//!
//! The engine opens no files: the bytes of a text are passed in. Every batch depends on the seed, the step and the data
//! only, so a resumed run sees what it would have seen.

pub mod batches;
pub mod tasks;
pub mod text;
pub mod tokenizer;

pub use batches::{BatchShape, Draw, EvalBatch};
pub use tasks::{Sequence, Task, TaskKind};
pub use text::{TextDataset, TextOptions};
pub use tokenizer::{Bpe, Encoded, StreamDecoder, Tokenizer, TokenizerKind};

/// What a run trains on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Dataset {
    /// A text.
    Text(TextDataset),
    /// A built-in task.
    Task(Task),
}

impl Dataset {
    /// The tokenizer, to be stored with the run.
    #[must_use]
    pub fn tokenizer(&self) -> &Tokenizer {
        match self {
            Self::Text(text) => text.tokenizer(),
            Self::Task(task) => task.tokenizer(),
        }
    }

    /// Number of tokens in the vocabulary.
    #[must_use]
    pub fn vocab_size(&self) -> u32 {
        self.tokenizer().vocab_size()
    }

    /// Sentences to show before training: what was changed or noticed while reading.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        match self {
            Self::Text(text) => text.notices(),
            Self::Task(_) => &[],
        }
    }

    /// One line about the data.
    #[must_use]
    pub fn summary(&self) -> String {
        match self {
            Self::Text(text) => {
                let (train, val) = text.parts();
                format!(
                    "text, {} tokens for training, {} for validation, {} tokenizer with {} tokens",
                    grouped(train),
                    grouped(val),
                    text.tokenizer().kind(),
                    self.vocab_size()
                )
            }
            Self::Task(task) => format!(
                "task {}, {} words, {} sequences for validation",
                task.kind().name(),
                self.vocab_size(),
                tasks::VALIDATION_SEQUENCES
            ),
        }
    }

    /// Replace `ids` and `labels` by a training batch, `[B, T]` row-major. The same `draw` gives the same batch.
    pub fn train_batch(
        &self,
        draw: Draw,
        shape: BatchShape,
        ids: &mut Vec<u32>,
        labels: &mut Vec<u32>,
    ) {
        ids.clear();
        labels.clear();
        match self {
            Self::Text(text) => text.train_batch(draw, shape, ids, labels),
            Self::Task(task) => task.train_batch(draw, shape, ids, labels),
        }
    }

    /// Number of validation batches: all that the validation part fills, or the first `limit` of them if `limit` is not 0
    /// (`train.eval_batches`).
    #[must_use]
    pub fn eval_batch_count(&self, shape: BatchShape, limit: usize) -> usize {
        let windows = match self {
            Self::Text(text) => text.eval_windows(shape.context),
            Self::Task(_) => tasks::VALIDATION_SEQUENCES,
        };
        let batches = windows.div_ceil(shape.batch);
        if limit == 0 {
            batches
        } else {
            batches.min(limit)
        }
    }

    /// Validation batch `index`, below [`Dataset::eval_batch_count`].
    #[must_use]
    pub fn eval_batch(&self, index: usize, shape: BatchShape) -> EvalBatch {
        match self {
            Self::Text(text) => text.eval_batch(index, shape),
            Self::Task(task) => task.eval_batch(index, shape),
        }
    }

    /// A prompt for a first sample: the first question of a task with what precedes it, or the first line (at most
    /// `context / 2` tokens) of a text's validation part.
    #[must_use]
    pub fn prompt(&self, context: usize) -> Vec<u32> {
        match self {
            Self::Text(text) => {
                let newline = text.tokenizer().encode("\n").ids;
                let mut prompt = Vec::new();
                for id in text.validation().take((context / 2).max(1)) {
                    prompt.push(id);
                    if prompt.len() > 8 && newline == [id] {
                        break;
                    }
                }
                prompt
            }
            Self::Task(task) => {
                let sequence = task.validation_sequence(0, context);
                let question = sequence
                    .answers
                    .iter()
                    .position(|&answer| answer)
                    .unwrap_or(0);
                sequence.ids[..=question].to_vec()
            }
        }
    }

    /// A number (in hexadecimal) that differs for other data, another vocabulary or another split. Checkpoints keep it, so
    /// that a run is not resumed on other data by mistake.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        match self {
            Self::Text(text) => text.fingerprint(),
            Self::Task(task) => task.fingerprint(),
        }
    }
}

/// `1,003,854`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
