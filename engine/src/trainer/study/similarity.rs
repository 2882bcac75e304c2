//! How alike states are, along a stream and across streams: unbiased linear CKA over minibatches of whole sequences.

use serde::Serialize;

use super::{StateName, Study, Trainer};
use crate::analysis::cka::{LEAST_TOKENS, Pairs, minibatch_cka};
use crate::analysis::{Bootstrap, Estimate};
use crate::error::{Error, Result};

/// Tokens of a minibatch, about.
const MINIBATCH: usize = 256;

/// One pair of states, by their numbers.
#[derive(Clone, Debug, Serialize)]
pub struct PairReport {
    /// The first.
    pub a: usize,
    /// The second, a larger number.
    pub b: usize,
    /// Their similarity.
    pub cka: Estimate,
}

/// States of one stream with each other.
#[derive(Clone, Debug, Serialize)]
pub struct WithinStream {
    /// Which stream.
    pub stream: u32,
    /// Mean over neighbours.
    pub adjacent: Estimate,
    /// Mean over pairs at least a quarter of the depth apart.
    pub far: Estimate,
}

/// States of one stream with those of another, the embedding left out.
#[derive(Clone, Debug, Serialize)]
pub struct CrossStream {
    /// One stream.
    pub first: u32,
    /// The other.
    pub second: u32,
    /// Mean over pairs at the same depth.
    pub matched: Estimate,
    /// Mean over pairs at different depths.
    pub mismatched: Estimate,
    /// Mean over pairs at least a quarter of the depth apart.
    pub far: Estimate,
    /// Matched minus far.
    pub difference: Estimate,
}

/// All pairs and their summaries. Intervals are over minibatches.
#[derive(Clone, Debug, Serialize)]
pub struct Similarity {
    /// The states that the numbers stand for.
    pub states: Vec<StateName>,
    /// Tokens of a minibatch.
    pub tokens: usize,
    /// Minibatches.
    pub minibatches: usize,
    /// Every pair.
    pub pairs: Vec<PairReport>,
    /// Stream by stream.
    pub within: Vec<WithinStream>,
    /// Each two streams.
    pub across: Vec<CrossStream>,
}

impl Trainer {
    /// The similarity of every two states. `seed` draws the intervals.
    ///
    /// # Errors
    /// If there are too few tokens, or the device fails or is too small.
    pub async fn similarity(&mut self, study: &Study, seed: u64) -> Result<Similarity> {
        let kept = study.kept.len();
        let each = (MINIBATCH / kept).clamp(1, study.sequences());
        let tokens = each * kept;
        if tokens < LEAST_TOKENS {
            let message = format!(
                "similarity needs {LEAST_TOKENS} tokens at a time, and there are {tokens}: look at more sequences"
            );
            return Err(Error::Op {
                op: "similarity",
                message,
            });
        }
        let minibatches = study.sequences() / each;
        let states = &study.clean.states;
        let pairs = Pairs::new(&mut self.runtime, states.len(), tokens, study.dim)?;
        let mut hsic = Vec::new();
        for number in 0..minibatches {
            let rows = number * tokens * study.dim..(number + 1) * tokens * study.dim;
            let take = |state: &super::clean::StateValues| -> Vec<f64> {
                state.tokens[rows.clone()]
                    .iter()
                    .map(|&v| f64::from(v))
                    .collect()
            };
            let features: Vec<Vec<f64>> = states.iter().map(take).collect();
            hsic.push(pairs.hsic(&mut self.runtime, &features).await?);
        }
        let bootstrap = Bootstrap::new(minibatches, study.bootstrap.draws(), seed);
        Ok(Summary {
            study,
            hsic: &hsic,
            bootstrap: &bootstrap,
        }
        .report(tokens))
    }
}

struct Summary<'a> {
    study: &'a Study,
    hsic: &'a [Vec<f64>],
    bootstrap: &'a Bootstrap,
}

impl Summary<'_> {
    fn cka(&self, counts: &[f64], a: usize, b: usize) -> f64 {
        minibatch_cka(self.hsic, counts, self.study.states.states.len(), a, b)
    }

    /// Mean over pairs; not a number without any.
    fn mean(&self, counts: &[f64], pairs: &[(usize, usize)]) -> f64 {
        let sum: f64 = pairs.iter().map(|&(a, b)| self.cka(counts, a, b)).sum();
        sum / pairs.len() as f64
    }

    fn report(&self, tokens: usize) -> Similarity {
        let count = self.study.states.states.len();
        let pair = |(a, b)| PairReport {
            a,
            b,
            cka: self.bootstrap.estimate(|counts| self.cka(counts, a, b)),
        };
        let all = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
        let streams = self.study.streams();
        let two =
            (0..streams).flat_map(|first| (first + 1..streams).map(move |second| (first, second)));
        Similarity {
            states: self.study.state_names(),
            tokens,
            minibatches: self.hsic.len(),
            pairs: all.map(pair).collect(),
            within: (0..streams).map(|stream| self.within(stream)).collect(),
            across: two
                .map(|(first, second)| self.across(first, second))
                .collect(),
        }
    }

    fn within(&self, stream: u32) -> WithinStream {
        let own = self.study.states_of(stream);
        let at_least = |apart: usize, at_most: usize| -> Vec<(usize, usize)> {
            let pairs = (0..own.len()).flat_map(|a| (a + 1..own.len()).map(move |b| (a, b)));
            let chosen = pairs.filter(|(a, b)| (apart..=at_most).contains(&(b - a)));
            chosen.map(|(a, b)| (own[a], own[b])).collect()
        };
        let (adjacent, far) = (at_least(1, 1), at_least(quarter(own.len()), usize::MAX));
        WithinStream {
            stream,
            adjacent: self
                .bootstrap
                .estimate(|counts| self.mean(counts, &adjacent)),
            far: self.bootstrap.estimate(|counts| self.mean(counts, &far)),
        }
    }

    fn across(&self, first: u32, second: u32) -> CrossStream {
        let (one, two) = (self.study.states_of(first), self.study.states_of(second));
        let choose = |wanted: &dyn Fn(usize) -> bool| -> Vec<(usize, usize)> {
            let pairs = (1..one.len()).flat_map(|a| (1..two.len()).map(move |b| (a, b)));
            let chosen = pairs.filter(|&(a, b)| wanted(a.abs_diff(b)));
            chosen.map(|(a, b)| (one[a], two[b])).collect()
        };
        let quarter = quarter(one.len());
        let (matched, mismatched, far) = (
            choose(&|apart| apart == 0),
            choose(&|apart| apart > 0),
            choose(&|apart| apart >= quarter),
        );
        let estimate =
            |pairs: &[(usize, usize)]| self.bootstrap.estimate(|counts| self.mean(counts, pairs));
        CrossStream {
            first,
            second,
            matched: estimate(&matched),
            mismatched: estimate(&mismatched),
            far: estimate(&far),
            difference: self
                .bootstrap
                .estimate(|counts| self.mean(counts, &matched) - self.mean(counts, &far)),
        }
    }
}

/// A quarter of the depth, in states; at least one.
fn quarter(states: usize) -> usize {
    states.saturating_sub(1).div_ceil(4).max(1)
}
