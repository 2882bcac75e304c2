//! A sample in progress: some tokens each turn, so that training goes on meanwhile.

use braid_engine::Result;
use braid_engine::data::{StreamDecoder, Tokenizer};
use braid_engine::sample::Sampling;

use super::loaded::Loaded;
use crate::protocol::{Sampled, Token};
use crate::sampler::Sampler;

/// Tokens of one turn.
const SLICE: usize = 4;

/// What to write.
#[derive(Clone, Debug)]
pub(super) struct Order {
    prompt: String,
    tokens: usize,
    sampling: Sampling,
}

impl Order {
    pub(super) fn new(prompt: String, tokens: usize, temperature: f64, seed: u64) -> Self {
        let sampling = Sampling {
            temperature,
            top_k: 0,
            seed,
        };
        Self {
            prompt,
            tokens,
            sampling,
        }
    }
}

/// A text that is being written with the parameters of one moment.
#[derive(Debug)]
pub(super) struct Writing {
    sampler: Sampler,
    tokenizer: Tokenizer,
    sampling: Sampling,
    step: u64,
    /// Tokens so far, with the probability of each that was chosen.
    tokens: Vec<(u32, Option<f64>)>,
    left: usize,
}

impl Writing {
    pub(super) async fn new(loaded: &mut Loaded, order: &Order) -> Result<Self> {
        let sampling = order.sampling;
        let (sampler, tokenizer, ids) = loaded.sampler(&order.prompt, sampling).await?;
        Ok(Self {
            sampler,
            tokenizer,
            sampling,
            step: loaded.step(),
            tokens: ids.into_iter().map(|id| (id, None)).collect(),
            left: order.tokens,
        })
    }

    /// Some more tokens; the text once it is complete.
    pub(super) async fn go_on(&mut self) -> Result<Option<Sampled>> {
        for _ in 0..SLICE {
            if self.left == 0 {
                break;
            }
            let (id, probability) = self.sampler.next_with_probability().await?;
            self.left -= 1;
            self.tokens.push((id, Some(probability)));
            if self.tokenizer.stop() == Some(id) {
                self.left = 0;
            }
        }
        Ok((self.left == 0).then(|| self.sampled()))
    }

    fn sampled(&self) -> Sampled {
        // A character of several tokens belongs to the last of them.
        let mut decoder = StreamDecoder::new(&self.tokenizer);
        let token = |&(id, probability): &(u32, Option<f64>)| Token {
            text: decoder.push(id),
            probability,
        };
        Sampled {
            step: self.step,
            tokens: self.tokens.iter().map(token).collect(),
            temperature: self.sampling.temperature,
            seed: self.sampling.seed,
        }
    }
}
