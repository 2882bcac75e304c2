//! Learning the merges.
//!
//! The most frequent pair of neighbouring tokens becomes a token, again and again; of equally frequent pairs, the one with
//! the smallest token numbers. The trainer of `tokenizers` is not used: it reports its progress on the console only, and
//! where two pairs make the same token, its result may depend on the order of a randomly seeded hash table.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet};

use tokenizers::models::bpe::{Merges, Vocab};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::tokenizer::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer};

use super::cut::{Run, pieces, runs};
use super::{alphabet, reason};
use crate::error::Result;

/// What is read of a text: more says nothing new about 32,768 tokens.
const MOST_BYTES: usize = 1 << 28;

/// Longer words are cut, so that a text without blanks takes no time of quadratic order.
const LONGEST_WORD: usize = 256;

/// A pair has to occur so often.
const LEAST_COUNT: u64 = 2;

type Pair = (u32, u32);

/// What [`learn`] finds, in the characters of [`alphabet`].
pub(super) struct Learnt {
    pub(super) vocabulary: Vocab,
    pub(super) merges: Merges,
    /// Beside the 256 bytes.
    pub(super) new_tokens: usize,
}

/// A distinct word of the text, as tokens, and how often it occurs.
struct Word {
    tokens: Vec<u32>,
    count: u64,
}

/// How often a pair occurs, and in which words: those that lack it by now may still be listed.
#[derive(Default)]
struct Occurrences {
    count: u64,
    words: Vec<usize>,
}

/// Learn until there are `size` tokens or no pair occurs often enough.
pub(super) fn learn(
    bytes: &[u8],
    size: usize,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Learnt> {
    let mut tokens: Vec<Vec<u8>> = alphabet::in_order()
        .iter()
        .map(|&byte| vec![byte])
        .collect();
    let mut numbers: HashMap<Vec<u8>, u32> = tokens.iter().cloned().zip(0..).collect();
    let mut words: Vec<Word> = distinct_words(&bytes[..bytes.len().min(MOST_BYTES)])?
        .into_iter()
        .map(|(word, count)| Word {
            tokens: word
                .iter()
                .map(|&byte| numbers[[byte].as_slice()])
                .collect(),
            count,
        })
        .collect();
    let mut pairs: HashMap<Pair, Occurrences> = HashMap::new();
    for (number, word) in words.iter().enumerate() {
        for pair in neighbours(&word.tokens) {
            let found = pairs.entry(pair).or_default();
            found.count += word.count;
            if found.words.last() != Some(&number) {
                found.words.push(number);
            }
        }
    }
    // The counts in the queue are upper bounds: pairs are counted again when they come out.
    let mut queue: BinaryHeap<(u64, Reverse<Pair>)> = pairs
        .iter()
        .map(|(&pair, found)| (found.count, Reverse(pair)))
        .collect();
    let (mut merged, mut known) = (Vec::<Pair>::new(), HashSet::<Pair>::new());
    let wanted = size.saturating_sub(tokens.len());
    while tokens.len() < size
        && let Some((count, Reverse(pair))) = queue.pop()
    {
        let now = pairs.get(&pair).map_or(0, |found| found.count);
        if now != count {
            queue.push((now, Reverse(pair)));
            continue;
        }
        if count < LEAST_COUNT {
            break;
        }
        let bytes = [&tokens[pair.0 as usize][..], &tokens[pair.1 as usize]].concat();
        // Two pairs can make one token: `ab` + `c` and `a` + `bc`.
        let token = *numbers.entry(bytes).or_insert_with_key(|bytes| {
            tokens.push(bytes.clone());
            tokens.len() as u32 - 1
        });
        if known.insert(pair) {
            merged.push(pair);
        }
        for pair in merge(pair, token, &mut words, &mut pairs) {
            queue.push((pairs[&pair].count, Reverse(pair)));
        }
        progress(wanted - (size - tokens.len()), wanted);
    }
    let text = |token: u32| alphabet::text(&tokens[token as usize]);
    Ok(Learnt {
        vocabulary: (0..tokens.len() as u32).map(|id| (text(id), id)).collect(),
        merges: merged.iter().map(|&(a, b)| (text(a), text(b))).collect(),
        new_tokens: tokens.len() - 256,
    })
}

fn neighbours(tokens: &[u32]) -> impl Iterator<Item = Pair> + '_ {
    tokens.windows(2).map(|pair| (pair[0], pair[1]))
}

/// Put `token` for `pair` in all words. Returns the pairs with `token` that there are now.
fn merge(
    pair: Pair,
    token: u32,
    words: &mut [Word],
    pairs: &mut HashMap<Pair, Occurrences>,
) -> BTreeSet<Pair> {
    let mut new = BTreeSet::new();
    let Some(Occurrences {
        words: mut places, ..
    }) = pairs.get_mut(&pair).map(|found| Occurrences {
        count: 0,
        words: std::mem::take(&mut found.words),
    })
    else {
        return new;
    };
    places.sort_unstable();
    places.dedup();
    for number in places {
        let word = &mut words[number];
        for old in neighbours(&word.tokens) {
            if let Some(found) = pairs.get_mut(&old) {
                found.count -= word.count;
            }
        }
        let mut merged = Vec::with_capacity(word.tokens.len());
        for &next in &word.tokens {
            if next == pair.1 && merged.pop_if(|last| *last == pair.0).is_some() {
                merged.push(token);
            } else {
                merged.push(next);
            }
        }
        word.tokens = merged;
        for now in neighbours(&word.tokens) {
            let found = pairs.entry(now).or_default();
            found.count += word.count;
            // It had the other pairs before.
            if now.0 == token || now.1 == token || now == pair {
                found.words.push(number);
                new.insert(now);
            }
        }
    }
    new
}

/// The words of a text, as bytes, and how often each occurs. Bytes that are no UTF-8 are words between the words.
fn distinct_words(bytes: &[u8]) -> Result<BTreeMap<Vec<u8>, u64>> {
    let cutter = ByteLevel::new(false, false, true);
    let mut words = BTreeMap::new();
    let mut add = |word: &[u8]| {
        for part in word.chunks(LONGEST_WORD) {
            match words.get_mut(part) {
                Some(count) => *count += 1,
                None => {
                    words.insert(part.to_vec(), 1);
                }
            }
        }
    };
    for run in pieces(bytes).flat_map(runs) {
        match run {
            Run::Text(text) => {
                let mut text = PreTokenizedString::from(text);
                cutter.pre_tokenize(&mut text).map_err(reason)?;
                for (word, ..) in text.get_splits(OffsetReferential::Original, OffsetType::None) {
                    if let Some(bytes) = alphabet::bytes(word) {
                        add(&bytes);
                    }
                }
            }
            Run::Bytes(bytes) => add(bytes),
        }
    }
    Ok(words)
}
