//! Looks at a model in training: they run plans of their own and change nothing that a step uses.

use super::Trainer;
use crate::analysis::routing_stats::SiteStats;
use crate::error::{Error, Result};
use crate::nn::residual::Routing;

/// Routing of one moment.
#[derive(Clone, Debug)]
pub struct Look {
    /// Means over the tokens of the first validation batch.
    pub sites: Vec<SiteStats>,
    /// How many tokens that is.
    pub tokens: u64,
}

/// Depth weights of one read, token by token.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenWeights {
    /// Which read.
    pub routing: Routing,
    /// `[tokens][sources]`
    pub weights: Vec<Vec<f64>>,
}

impl Trainer {
    /// Routing of this moment, with norms per depth.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn look(&mut self) -> Result<Look> {
        Ok(Look {
            sites: self.routing().await?,
            tokens: u64::from(self.config.batch.rows()),
        })
    }

    /// Depth weights of every token of a text `ids`; at most as many as the model sees at once.
    ///
    /// # Errors
    /// If the text is empty or too long, or the device fails.
    pub async fn depth_weights(&mut self, ids: &[u32]) -> Result<Vec<TokenWeights>> {
        let context = self.config.batch.context as usize;
        let vocab = self.model.vocab_size;
        if ids.is_empty() || ids.len() > context || ids.iter().any(|&id| id >= vocab) {
            return Err(Error::Op {
                op: "depth_weights",
                message: format!(
                    "{} tokens; there must be 1 to {context}, below {vocab}",
                    ids.len()
                ),
            });
        }
        // The text stands in the first sequence. Attention is causal: what follows it changes nothing before.
        let mut batch = vec![0; self.config.batch.rows() as usize];
        batch[..ids.len()].copy_from_slice(ids);
        let labels = vec![0; batch.len()];
        self.runtime.write_batch(&self.watch, &batch, &labels)?;
        self.runtime.submit(false, &[&self.watch])?;
        let names: Vec<String> = self.routing.iter().map(Routing::tensor).collect();
        let read = self.runtime.read(&self.watch, &names).await?;
        let cut = |(routing, values): (&Routing, &crate::executor::Values)| {
            let columns = routing.sources.len();
            let rows = values.to_f64();
            TokenWeights {
                routing: routing.clone(),
                weights: rows
                    .chunks(columns)
                    .take(ids.len())
                    .map(<[f64]>::to_vec)
                    .collect(),
            }
        };
        Ok(self.routing.iter().zip(&read).map(cut).collect())
    }
}
