//! Text from a model, token by token.

use std::sync::Arc;

use braid_engine::executor::{Data, Executor};
use braid_engine::models::config::ModelConfig;
use braid_engine::models::{decoder, plans};
use braid_engine::nn::Batch;
use braid_engine::params::Parameters;
use braid_engine::plan::External;
use braid_engine::runtime::{Loaded, Runtime};
use braid_engine::sample::Sampling;
use braid_engine::{Error, Result};

/// Names, shapes and places of a model's parameters.
///
/// # Errors
/// If the model is not implemented.
pub fn parameters(model: &ModelConfig) -> Result<Arc<Parameters>> {
    Ok(Arc::new(decoder::parameters(model)?))
}

/// A model that continues a text.
#[derive(Debug)]
pub struct Sampler {
    runtime: Runtime,
    predict: Loaded,
    sampling: Sampling,
    vocab: usize,
    context: usize,
    ids: Vec<u32>,
}

impl Sampler {
    /// Load a model; `values` is an arena of parameters, `prompt` has at least one token.
    ///
    /// # Errors
    /// If the model does not fit the device, or the prompt is empty or not of this vocabulary.
    pub fn new(
        executor: Box<dyn Executor>,
        model: &ModelConfig,
        context: u32,
        values: &[f32],
        sampling: Sampling,
        prompt: Vec<u32>,
    ) -> Result<Self> {
        sampling.validate()?;
        if prompt.is_empty() || prompt.iter().any(|&id| id >= model.vocab_size) {
            return Err(Error::Op {
                op: "sample",
                message: "the prompt must have tokens, all of the model's vocabulary".into(),
            });
        }
        let parameters = parameters(model)?;
        let mut runtime = Runtime::new(executor, parameters.clone())?;
        runtime.write_external(External::Values, Data::F32(values))?;
        let batch = Batch {
            sequences: 1,
            context,
        };
        let plan = plans::prediction(model, &parameters, batch, &runtime.limits())?;
        let predict = runtime.load_model(&plan)?;
        Ok(Self {
            runtime,
            predict,
            sampling,
            vocab: model.vocab_size as usize,
            context: context as usize,
            ids: prompt,
        })
    }

    /// The next token.
    ///
    /// # Errors
    /// If the device fails, or the model has diverged.
    pub async fn next(&mut self) -> Result<u32> {
        Ok(self.next_with_probability().await?.0)
    }

    /// The next token, and the probability that the model gives it (at temperature 1).
    ///
    /// # Errors
    /// As [`Sampler::next`].
    pub async fn next_with_probability(&mut self) -> Result<(u32, f64)> {
        let window = &self.ids[self.ids.len().saturating_sub(self.context)..];
        // Attention is causal: what follows the last token cannot change its logits.
        let last = window.len() - 1;
        let mut ids = window.to_vec();
        ids.resize(self.context, 0);
        self.runtime.write_batch(&self.predict, &ids, &[])?;
        self.runtime.submit(false, &[&self.predict])?;
        let read = self
            .runtime
            .read(&self.predict, &[plans::LOGITS.to_owned()])
            .await?;
        let logits = read
            .first()
            .map(braid_engine::executor::Values::to_f64)
            .unwrap_or_default();
        let row = &logits[last * self.vocab..][..self.vocab];
        let id = self.sampling.choose(row, self.ids.len() as u64)?;
        self.ids.push(id);
        let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = row.iter().map(|logit| (logit - most).exp()).sum();
        Ok((id, (row[id as usize] - most).exp() / total))
    }
}
