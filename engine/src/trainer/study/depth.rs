//! Norms along depth: of what is read, of what is given, and of the loss's gradient with respect to it.

use serde::Serialize;

use super::{Study, Trainer};
use crate::analysis::{Estimate, site_kind};
use crate::error::Result;
use crate::executor::Values;
use crate::models::{norms, plans};

/// Norms at one site, means over tokens of the Euclidean norm of a vector of the model's width.
#[derive(Clone, Debug, Serialize)]
pub struct DepthReport {
    /// The site; `L` is the read-out.
    pub site: u32,
    /// `attn`, `mlp` or `readout`.
    pub kind: &'static str,
    /// Of what it reads, before its norm.
    pub input: Estimate,
    /// Of what the sublayer gives; not at the read-out, here and below.
    pub output: Option<Estimate>,
    /// Of the gradient of the summed cross-entropy with respect to that.
    pub gradient: Option<Estimate>,
}

impl Trainer {
    /// Norms at every site, with one backward pass a batch. Clears the gradients of the parameters, as a step does.
    ///
    /// # Errors
    /// If the device fails or is too small.
    pub async fn depth_report(&mut self, study: &Study) -> Result<Vec<DepthReport>> {
        let (parameters, limits) = (self.parameters().clone(), self.runtime.limits());
        let plan = plans::output_gradients(&self.model, &parameters, self.config.batch, &limits)?;
        let plan = self.runtime.load(&plan)?;
        let names: Vec<String> = (0..study.sublayers)
            .map(norms::output_gradient_name)
            .collect();
        let wanted: Vec<String> = names
            .iter()
            .filter(|name| plan.places.contains_key(*name))
            .cloned()
            .collect();
        // What the last step left is overwritten.
        self.gradients.exist = false;
        let mut gradients = vec![Vec::new(); wanted.len()];
        for (batch, &count) in study.batches.iter().zip(&study.counts) {
            self.runtime.write_batch(&plan, &batch.ids, &batch.labels)?;
            self.runtime.submit(true, &[&plan])?;
            let read = self.runtime.read(&plan, &wanted).await?;
            for (series, factors) in gradients.iter_mut().zip(read.iter().map(Values::to_f64)) {
                let scale = (study.dim as f64).sqrt();
                let norms: Vec<f64> = factors
                    .iter()
                    .map(|&r| scale * norms::size_of_row(r))
                    .collect();
                series.extend(study.sequence_means(&norms, count));
            }
        }
        let mean = |series: &Vec<f64>| study.bootstrap.mean(series);
        let report = |site: u32| {
            let at = wanted
                .iter()
                .position(|name| *name == norms::output_gradient_name(site));
            DepthReport {
                site,
                kind: site_kind(site, study.sublayers),
                input: mean(&study.clean.inputs[site as usize]),
                output: study.clean.outputs.get(site as usize).map(mean),
                gradient: at.map(|at| mean(&gradients[at])),
            }
        };
        Ok((0..=study.sublayers).map(report).collect())
    }
}
