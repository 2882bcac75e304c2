//! Built-in tasks: sequences made on the spot, with questions whose answers are known.
//!
//! A sequence is a list of words. At every position the model predicts a label. At a question, that is its answer. After a
//! fact it is what the fact is about: its key. Everywhere else it is the word `.`, which says "nothing to answer here". All
//! labels follow from the words so far, so **the loss can fall to 0** on every task; the share of right answers counts
//! questions only.
//! A sample therefore reads like a dialogue: give a prompt that ends in a question, get the answer.
//!
//! Facts are labelled with their key because an answer is found in two moves: note beside each value which key stood before
//! it, then look for the key. Without that label the first move has no gradient of its own, and training waits for
//! luck: with it, 4 of 4 runs of the default size answered most questions of `recall` after 200 steps, without it 1 of 3.
//!
//! | task | one sequence | answers |
//! |---|---|---|
//! | `recall` | facts `a 3 h 5 ..` with random keys and values, then questions `h? a? ..` | the value that stands behind the key |
//! | `copy` | `d a f > d a f` again and again, other letters each time | the letters before `>`, in order |
//! | `sort` | `d a f > a d f` | the same letters in alphabetical order |
//! | `modular` | `7+ 8= 5` again and again | the last digit of the sum |
//! | `depth-recall` | facts `a: c d: a c: d ..` that form one ring, then `a? d?? ..` | `?` the next letter of the ring, `??` the one after it |
//!
//! # What depth-recall asks of the depth
//! To answer `a?` some layer must first write, at each fact's second word, which letter stood before it (attention to the
//! previous token); a later layer then finds the place where that letter is `a`. To answer `a??` a third layer must search
//! *the same early notes* once more, for the letter that the second one found. So a late layer needs what an early layer computed at
//! other positions together with what the layer below it computed at its own. A plain residual stream can carry both, so
//! the task does not separate mechanisms by itself; but what a routed model must read, and from where, is known, so that
//! its weights can be judged. Three layers are needed for `??`; `?` alone needs two.
//!
//! Training and validation draw from different random streams. Questions of `modular` are so few (100) that both
//! see all of them: its validation loss says how well they were learned, not how well they generalise.

use rand_chacha::ChaCha8Rng;

use crate::data::batches::{BatchShape, Draw, EvalBatch, Fingerprint};
use crate::data::tokenizer::{Tokenizer, Words};
use crate::error::{Error, Result};
use crate::random;

/// Sequences in the validation part of a task.
pub const VALIDATION_SEQUENCES: usize = 256;

/// Validation data is the same for every seed of a run, so that runs can be compared.
const VALIDATION_SEED: u64 = 0x6272_6169_6421;

/// The word that says "nothing to answer here".
const NOTHING: u32 = 0;

/// The tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TaskKind {
    /// Look up the value of a key.
    Recall,
    /// Repeat a list.
    Copy,
    /// Sort a list.
    Sort,
    /// Add modulo 10.
    Modular,
    /// Look up a letter, and the letter that belongs to that one.
    DepthRecall,
}

impl TaskKind {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Recall,
        Self::Copy,
        Self::Sort,
        Self::Modular,
        Self::DepthRecall,
    ];

    /// Its name in `data.task`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Recall => "recall",
            Self::Copy => "copy",
            Self::Sort => "sort",
            Self::Modular => "modular",
            Self::DepthRecall => "depth-recall",
        }
    }

    /// The task of a name.
    ///
    /// # Errors
    /// Lists the names.
    pub fn of(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| {
                Error::config(
                    "data.task",
                    format!(
                        "is \"{name}\"; the tasks are {}",
                        Self::ALL.map(Self::name).join(", ")
                    ),
                )
            })
    }

    /// Share of right answers of who draws among all answers that a question can have, without a look at the sequence.
    #[must_use]
    pub fn chance(self) -> f64 {
        let answers = match self {
            Self::Recall => RECALL_VALUES,
            Self::Copy | Self::Sort => LETTERS,
            Self::Modular => MODULUS,
            Self::DepthRecall => RING,
        };
        1.0 / answers as f64
    }

    /// The shortest context in which a sequence holds a question for sure.
    #[must_use]
    pub fn least_context(self) -> usize {
        match self {
            Self::Recall => 2 * RECALL_PAIRS + 1,
            Self::DepthRecall => 2 * RING + 1,
            Self::Copy | Self::Sort => LONGEST_LIST + 1,
            Self::Modular => 2,
        }
    }
}

/// Facts of a `recall` sequence. Few, because this is the default task, which is to be learned in a few hundred steps.
const RECALL_PAIRS: usize = 4;
/// Keys that its facts are drawn from.
const RECALL_KEYS: usize = 8;
/// Values of a key.
const RECALL_VALUES: usize = 8;
/// Letters of `copy` and `sort`.
const LETTERS: usize = 16;
/// Shortest and longest list of `copy` and `sort`.
const SHORTEST_LIST: usize = 4;
const LONGEST_LIST: usize = 8;
/// Modulus of `modular`.
const MODULUS: usize = 10;
/// Letters of a `depth-recall` ring.
const RING: usize = 6;

/// One sequence of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    /// Words.
    pub ids: Vec<u32>,
    /// What to predict at each.
    pub labels: Vec<u32>,
    /// Whether the word is a question, so that its label is an answer.
    pub answers: Vec<bool>,
}

impl Sequence {
    /// A word with nothing to answer.
    fn say(&mut self, word: usize) {
        self.ids.push(word as u32);
        self.labels.push(NOTHING);
        self.answers.push(false);
    }

    /// The end of a fact, to be labelled with what the fact is about. Not counted as an answer.
    fn note(&mut self, word: usize, label: usize) {
        self.ids.push(word as u32);
        self.labels.push(label as u32);
        self.answers.push(false);
    }

    /// A word after which `answer` is expected.
    fn ask(&mut self, word: usize, answer: usize) {
        self.ids.push(word as u32);
        self.labels.push(answer as u32);
        self.answers.push(true);
    }

    fn truncate(&mut self, len: usize) {
        self.ids.truncate(len);
        self.labels.truncate(len);
        self.answers.truncate(len);
    }
}

/// A task with its vocabulary.
#[derive(Clone, Debug)]
pub struct Task {
    kind: TaskKind,
    tokenizer: Tokenizer,
}

impl Task {
    /// Prepare a task.
    ///
    /// # Errors
    /// If `context` is too short to hold a question.
    pub fn new(kind: TaskKind, context: usize) -> Result<Self> {
        if context < kind.least_context() {
            return Err(Error::config(
                "model.context",
                format!(
                    "is {context}; data.task = \"{}\" needs {} or more",
                    kind.name(),
                    kind.least_context()
                ),
            ));
        }
        Ok(Self {
            kind,
            tokenizer: Tokenizer::Words(Words::new(words(kind))?),
        })
    }

    /// Which task it is.
    #[must_use]
    pub fn kind(&self) -> TaskKind {
        self.kind
    }

    /// Its vocabulary.
    #[must_use]
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The next sequence of a random stream.
    #[must_use]
    pub fn sequence(&self, rng: &mut ChaCha8Rng, context: usize) -> Sequence {
        let mut sequence = Sequence::default();
        match self.kind {
            TaskKind::Recall => recall(rng, context, &mut sequence),
            TaskKind::Copy => lists(rng, context, &mut sequence, false),
            TaskKind::Sort => lists(rng, context, &mut sequence, true),
            TaskKind::Modular => modular(rng, context, &mut sequence),
            TaskKind::DepthRecall => depth_recall(rng, context, &mut sequence),
        }
        sequence.truncate(context);
        sequence
    }

    /// Sequence `index` of the validation part.
    #[must_use]
    pub fn validation_sequence(&self, index: usize, context: usize) -> Sequence {
        let label = format!("validation/{}/{index}", self.kind.name());
        self.sequence(&mut random::stream(VALIDATION_SEED, &label), context)
    }

    pub(super) fn train_batch(
        &self,
        draw: Draw,
        shape: BatchShape,
        ids: &mut Vec<u32>,
        labels: &mut Vec<u32>,
    ) {
        let mut rng = random::stream(draw.seed, &draw.label());
        for _ in 0..shape.batch {
            let sequence = self.sequence(&mut rng, shape.context);
            ids.extend(sequence.ids);
            labels.extend(sequence.labels);
        }
    }

    pub(super) fn eval_batch(&self, index: usize, shape: BatchShape) -> EvalBatch {
        let mut batch = EvalBatch {
            ids: Vec::with_capacity(shape.rows()),
            labels: Vec::with_capacity(shape.rows()),
            counted: 0,
            answers: Vec::new(),
        };
        let first = index * shape.batch;
        for number in first..(first + shape.batch).min(VALIDATION_SEQUENCES) {
            let sequence = self.validation_sequence(number, shape.context);
            let start = batch.ids.len();
            batch.answers.extend(
                (0..shape.context)
                    .filter(|&position| sequence.answers[position])
                    .map(|position| start + position),
            );
            batch.ids.extend(sequence.ids);
            batch.labels.extend(sequence.labels);
        }
        batch.counted = batch.ids.len();
        batch.ids.resize(shape.rows(), NOTHING);
        batch.labels.resize(shape.rows(), NOTHING);
        batch
    }

    pub(super) fn fingerprint(&self) -> String {
        // The sequences themselves: a change of a task's construction is a change of data.
        let mut hash = Fingerprint::new()
            .add(self.kind.name().as_bytes())
            .add(self.tokenizer.to_json().as_bytes());
        for index in 0..8 {
            for id in self.validation_sequence(index, 64).ids {
                hash = hash.add(&id.to_le_bytes());
            }
        }
        hash.text()
    }
}

/// The letter of a number below 26.
fn letter(number: usize) -> char {
    char::from(b'a' + number as u8)
}

/// The vocabulary of a task. Word 0 is `.`.
fn words(kind: TaskKind) -> Vec<String> {
    let letters = |count: usize, ending: &'static str| {
        (0..count).map(move |number| format!("{}{ending}", letter(number)))
    };
    let digits = |ending: &'static str| (0..MODULUS).map(move |number| format!("{number}{ending}"));
    let mut list = vec![".".to_string()];
    match kind {
        TaskKind::Recall => {
            list.extend(letters(RECALL_KEYS, ""));
            list.extend((0..RECALL_VALUES).map(|value| value.to_string()));
            list.extend(letters(RECALL_KEYS, "?"));
        }
        TaskKind::Copy | TaskKind::Sort => {
            list.push(">".into());
            list.extend(letters(LETTERS, ""));
        }
        TaskKind::Modular => {
            list.extend(digits(""));
            list.extend(digits("+"));
            list.extend(digits("="));
        }
        TaskKind::DepthRecall => {
            for ending in ["", ":", "?", "??"] {
                list.extend(letters(RING, ending));
            }
        }
    }
    list
}

/// The first `count` numbers of a random order of `0..of`.
fn draw(rng: &mut ChaCha8Rng, of: usize, count: usize) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..of).collect();
    for place in 0..count {
        let other = place + random::below(rng, of - place);
        numbers.swap(place, other);
    }
    numbers.truncate(count);
    numbers
}

fn recall(rng: &mut ChaCha8Rng, context: usize, sequence: &mut Sequence) {
    let (key, value, question) = (1, 1 + RECALL_KEYS, 1 + RECALL_KEYS + RECALL_VALUES);
    let facts: Vec<(usize, usize)> = draw(rng, RECALL_KEYS, RECALL_PAIRS)
        .into_iter()
        .map(|name| (name, random::below(rng, RECALL_VALUES)))
        .collect();
    for &(name, number) in &facts {
        sequence.say(key + name);
        sequence.note(value + number, key + name);
    }
    while sequence.ids.len() < context {
        let (name, number) = facts[random::below(rng, RECALL_PAIRS)];
        sequence.ask(question + name, value + number);
    }
}

fn lists(rng: &mut ChaCha8Rng, context: usize, sequence: &mut Sequence, sorted: bool) {
    const MARK: usize = 1;
    while sequence.ids.len() < context {
        let len = SHORTEST_LIST + random::below(rng, LONGEST_LIST - SHORTEST_LIST + 1);
        let mut list: Vec<usize> = (0..len)
            .map(|_| MARK + 1 + random::below(rng, LETTERS))
            .collect();
        list.iter().for_each(|&word| sequence.say(word));
        if sorted {
            list.sort_unstable();
        }
        // Each word of the answer is the question for the next one; after the last there is nothing to say.
        let mut word = MARK;
        for next in list {
            sequence.ask(word, next);
            word = next;
        }
        sequence.say(word);
    }
}

fn modular(rng: &mut ChaCha8Rng, context: usize, sequence: &mut Sequence) {
    let (result, plus, equals) = (1, 1 + MODULUS, 1 + 2 * MODULUS);
    while sequence.ids.len() < context {
        let (a, b) = (random::below(rng, MODULUS), random::below(rng, MODULUS));
        let sum = result + (a + b) % MODULUS;
        sequence.say(plus + a);
        sequence.ask(equals + b, sum);
        sequence.say(sum);
    }
}

fn depth_recall(rng: &mut ChaCha8Rng, context: usize, sequence: &mut Sequence) {
    let (plain, fact, once, twice) = (1, 1 + RING, 1 + 2 * RING, 1 + 3 * RING);
    // A random ring: `ring[i]` is followed by `ring[i + 1]`.
    let ring = draw(rng, RING, RING);
    let after = |place: usize, hops: usize| ring[(place + hops) % RING];
    for place in draw(rng, RING, RING) {
        sequence.say(fact + ring[place]);
        sequence.note(plain + after(place, 1), plain + ring[place]);
    }
    while sequence.ids.len() < context {
        let place = random::below(rng, RING);
        if random::below(rng, 2) == 0 {
            sequence.ask(once + ring[place], plain + after(place, 1));
        } else {
            sequence.ask(twice + ring[place], plain + after(place, 2));
        }
    }
}
