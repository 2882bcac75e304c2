//! Choosing the next token from logits: temperature, top-k, seed.

use crate::error::{Error, Result};
use crate::random;

/// How to sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Logits are divided by it; 0 takes the most likely token.
    pub temperature: f64,
    /// Only the `top_k` most likely tokens are candidates; 0: all.
    pub top_k: usize,
    /// Seed: with the position, it fixes every choice.
    pub seed: u64,
}

impl Sampling {
    /// Refuse what cannot work.
    ///
    /// # Errors
    /// If the temperature is negative or not finite.
    pub fn validate(&self) -> Result<()> {
        if self.temperature.is_finite() && self.temperature >= 0.0 {
            return Ok(());
        }
        Err(Error::config(
            "temperature",
            format!("is {}; it must be 0 or more", self.temperature),
        ))
    }

    /// The next token, number `position` of the text. Equal logits: the lower token wins.
    ///
    /// # Errors
    /// If no logit is finite.
    pub fn choose(&self, logits: &[f64], position: u64) -> Result<u32> {
        let mut order: Vec<usize> = (0..logits.len())
            .filter(|&token| logits[token].is_finite())
            .collect();
        order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]).then(a.cmp(&b)));
        let Some(&best) = order.first() else {
            let message = "the model's logits are not finite; it has diverged".into();
            return Err(Error::Op {
                op: "sample",
                message,
            });
        };
        if self.temperature == 0.0 {
            return Ok(best as u32);
        }
        if self.top_k > 0 {
            order.truncate(self.top_k);
        }
        let weight = |token: usize| ((logits[token] - logits[best]) / self.temperature).exp();
        let total: f64 = order.iter().map(|&token| weight(token)).sum();
        let mut rng = random::stream(self.seed, &format!("sample/{position}"));
        let mut left = random::uniform(&mut rng) * total;
        for &token in &order {
            left -= weight(token);
            if left <= 0.0 {
                return Ok(token as u32);
            }
        }
        Ok(order.last().map_or(best, |&token| token) as u32)
    }
}
