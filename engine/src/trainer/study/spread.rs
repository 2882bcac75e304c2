//! How many directions states use, and how different the sources of a token are.

use serde::Serialize;

use super::{StateName, Study};
use crate::analysis::Estimate;
use crate::analysis::rank::Moments;
use crate::analysis::source_stats::{cosine, relative_difference, stacked_rank};

/// Draws of the ranks' intervals at most, and the numbers that all of them together may cost.
const RANK_DRAWS: usize = 100;
const RANK_WORK: f64 = 2e10;

/// Rank measures of one state, its columns centred.
#[derive(Clone, Debug, Serialize)]
pub struct StateRanks {
    /// Which state.
    pub state: StateName,
    /// Effective rank of the singular values.
    pub erank: Estimate,
    /// The same of their squares.
    pub erank2: Estimate,
    /// Participation ratio.
    pub participation: Estimate,
    /// Stable rank.
    pub stable: Estimate,
}

/// The states of one stream as sources of a token.
#[derive(Clone, Debug, Serialize)]
pub struct StreamSources {
    /// Which stream.
    pub stream: u32,
    /// Names, the oldest first.
    pub names: Vec<String>,
    /// Mean cosine of each two neighbours, one fewer than names.
    pub adjacent_cosine: Vec<Estimate>,
    /// Effective rank of the sources of a token, stacked; mean over tokens.
    pub effective_rank: Estimate,
    /// How far each state is from that of stream 0 at the same depth, in units of their mean norm; not for stream 0.
    pub difference: Option<Vec<Estimate>>,
}

/// All states and streams.
#[derive(Clone, Debug, Serialize)]
pub struct SpreadReport {
    /// Tokens that the ranks are of.
    pub tokens: usize,
    /// State by state.
    pub ranks: Vec<StateRanks>,
    /// Stream by stream.
    pub sources: Vec<StreamSources>,
}

impl Study {
    /// What the clean run says about states.
    #[must_use]
    pub fn spread_report(&self) -> SpreadReport {
        let names = self.state_names();
        let ranks = names.into_iter().enumerate();
        SpreadReport {
            tokens: self.sequences() * self.kept.len(),
            ranks: ranks
                .map(|(number, state)| self.ranks(number, state))
                .collect(),
            sources: (0..self.streams())
                .map(|stream| self.sources(stream))
                .collect(),
        }
    }

    /// The kept tokens of a state, sequence by sequence.
    fn tokens_of(&self, number: usize) -> Vec<f64> {
        self.clean.states[number]
            .tokens
            .iter()
            .map(|&v| f64::from(v))
            .collect()
    }

    fn ranks(&self, number: usize, state: StateName) -> StateRanks {
        let (dim, tokens) = (self.dim, self.tokens_of(number));
        let sequences = tokens.chunks_exact(self.kept.len() * dim);
        let moments: Vec<Moments> = sequences.map(|rows| Moments::of(rows, dim)).collect();
        let of = |counts: &[f64]| {
            let mut sum = Moments::new(dim);
            for (moments, &count) in moments
                .iter()
                .zip(counts)
                .filter(|(_, count)| **count > 0.0)
            {
                sum.add(moments, count);
            }
            sum.ranks()
        };
        let work = (dim as f64).powi(3) * self.clean.states.len() as f64;
        let draws = ((RANK_WORK / work) as usize).clamp(10, RANK_DRAWS);
        // Eigenvalues once for all four measures.
        let drawn = self.bootstrap.fewer(draws).collect(of);
        StateRanks {
            state,
            erank: drawn.estimate(|ranks| ranks.erank),
            erank2: drawn.estimate(|ranks| ranks.erank2),
            participation: drawn.estimate(|ranks| ranks.participation),
            stable: drawn.estimate(|ranks| ranks.stable),
        }
    }

    fn sources(&self, stream: u32) -> StreamSources {
        let own = self.states_of(stream);
        let states: Vec<Vec<f64>> = own.iter().map(|&number| self.tokens_of(number)).collect();
        let token =
            |state: usize, token: usize| &states[state][token * self.dim..(token + 1) * self.dim];
        let kept = self.kept.len();
        // The mean over the kept tokens of each sequence, for which it exists.
        let estimate = |of: &dyn Fn(usize) -> f64| {
            let mean = |sequence: usize| {
                let values = (sequence * kept..(sequence + 1) * kept).map(of);
                let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
                values.iter().sum::<f64>() / values.len() as f64
            };
            let means: Vec<f64> = (0..self.sequences()).map(mean).collect();
            self.bootstrap.mean(&means)
        };
        let cosines =
            (1..own.len()).map(|at| estimate(&|t| cosine(token(at - 1, t), token(at, t))));
        let stacked = |t: usize| {
            let sources: Vec<&[f64]> = (0..own.len()).map(|at| token(at, t)).collect();
            stacked_rank(&sources)
        };
        let difference = (stream > 0).then(|| {
            let pairs = own.iter().zip(self.states_of(0)).enumerate();
            let each = pairs.map(|(at, (_, other))| {
                let others = self.tokens_of(other);
                let other = |t: usize| &others[t * self.dim..(t + 1) * self.dim];
                estimate(&|t| relative_difference(other(t), token(at, t)))
            });
            each.collect()
        });
        StreamSources {
            stream,
            names: own
                .iter()
                .map(|&number| self.states.states[number].name.clone())
                .collect(),
            adjacent_cosine: cosines.collect(),
            effective_rank: estimate(&stacked),
            difference,
        }
    }
}
