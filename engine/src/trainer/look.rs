//! Looks at a model in training: they run plans of their own and change nothing that a step uses.

use super::Trainer;
use crate::analysis::expert_load::{ExpertLoad, expert_load};
use crate::analysis::routing_stats::{SiteStats, site_stats};
use crate::analysis::unfolded::{Published, unfold};
use crate::error::{Error, Result};
use crate::executor::{Data, Values};
use crate::models::{norms, plans};
use crate::nn::experts::Routed;
use crate::nn::residual::{Routing, Weighting};
use crate::ops::edit_weights::{RouteEdit, edit_values};
use crate::runtime::Loaded;
use crate::tape::edit_name;

/// What a model does at one moment: means over the tokens of the first validation batch.
#[derive(Clone, Debug)]
pub struct Look {
    /// Depth weights and gates; empty for mechanisms without any.
    pub sites: Vec<SiteStats>,
    /// The use of experts, layer by layer; empty without experts.
    pub experts: Vec<ExpertLoad>,
    /// How many tokens that is.
    pub tokens: u64,
    /// Sizes at each site, the read-out last.
    pub depth: Vec<DepthNorm>,
    /// The mechanism as one dense matrix, if it can be written so; mean over the first tokens, at most 64.
    pub unfolded: Option<Vec<Vec<f64>>>,
}

/// Tokens that the unfolded matrix is a mean over, at most: it is computed on the host.
const UNFOLDED_TOKENS: usize = 64;

/// Sizes at one site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DepthNorm {
    /// The site.
    pub site: u32,
    /// Of what the sublayer reads, before its norm: root mean square over tokens and channels.
    pub input: f64,
    /// Of what it gives, likewise; 0 at the read-out.
    pub output: f64,
    /// Norm of the last update's gradient, before clipping, with respect to the parameters of the sublayer, its norm's gain
    /// included; at the read-out those of the last norm and of an untied head. Squared and summed over the sites, with the
    /// embedding's and the mechanism's own parameters, they make [`super::StepResult::grad_norm`]. `None` before the first
    /// update since the start or a restore, and where it is not finite.
    pub gradient: Option<f64>,
}

/// Held-out losses with and without edits of the routes, one of each batch; nats.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldOut {
    /// Without edits.
    pub clean: Vec<f64>,
    /// With them.
    pub edited: Vec<f64>,
}

/// An edit of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteEdit {
    /// Which site; `L` is the read-out.
    pub site: u32,
    /// Which stream, 0 for mechanisms with one.
    pub stream: u32,
    /// What is done.
    pub edit: RouteEdit,
}

/// The plan with which routes are edited, loaded when it is first asked for.
#[derive(Debug)]
pub(super) struct Edited {
    plan: Loaded,
    routing: Vec<Routing>,
}

/// The plan that measures the gradient, loaded when it is first asked for.
#[derive(Debug, Default)]
pub(super) struct Gradients {
    plan: Option<Loaded>,
    /// An update has left a gradient.
    pub(super) exist: bool,
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
    /// Depth weights, gates, the use of experts, sizes per depth and the unfolded matrix of this moment, by one forward pass.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn look(&mut self) -> Result<Look> {
        let batch = self.data.eval_batch(0, self.shape());
        self.runtime
            .write_batch(&self.watch, &batch.ids, &batch.labels)?;
        self.runtime.submit(false, &[&self.watch])?;
        let sublayers = self.model.sublayers();
        let gradients = self.gradient_norms().await?;
        let mut names: Vec<String> = self.routing.iter().map(Routing::tensor).collect();
        for gate in &self.gates {
            if !names.contains(&gate.tensor) {
                names.push(gate.tensor.clone());
            }
        }
        names.extend(self.experts.iter().map(Routed::statistics));
        names.extend((0..=sublayers).map(norms::input_name));
        names.extend((0..sublayers).map(norms::output_name));
        let read = self.runtime.read(&self.watch, &names).await?;
        let values: Vec<Vec<f64>> = read.iter().map(Values::to_f64).collect();
        let find = |name: &str| {
            let at = names.iter().position(|known| known == name)?;
            Some(values[at].clone())
        };
        let rows = self.config.batch.rows();
        let elements = f64::from(rows) * f64::from(self.model.hidden_size);
        let size = |name: String| find(&name).map_or(0.0, |sum| (sum[0] / elements).sqrt());
        let depth = (0..=sublayers).map(|site| DepthNorm {
            site,
            input: size(norms::input_name(site)),
            output: size(norms::output_name(site)),
            gradient: gradients.get(site as usize).copied().flatten(),
        });
        let load = |routed: &Routed| {
            let statistics = find(&routed.statistics())?;
            Some(expert_load(routed.layer, &statistics))
        };
        let published = Published {
            routing: &self.routing,
            gates: &self.gates,
            find: &find,
            tokens: UNFOLDED_TOKENS.min(rows as usize),
        };
        Ok(Look {
            sites: site_stats(sublayers, &self.routing, &self.gates, find),
            experts: self.experts.iter().filter_map(load).collect(),
            tokens: u64::from(rows),
            depth: depth.collect(),
            unfolded: unfold(&self.model, &published),
        })
    }

    /// [`DepthNorm::gradient`] of every site; empty if there is no gradient.
    async fn gradient_norms(&mut self) -> Result<Vec<Option<f64>>> {
        if !self.gradients.exist {
            return Ok(Vec::new());
        }
        let plan = match self.gradients.plan.take() {
            Some(plan) => plan,
            None => {
                let (parameters, limits) = (self.parameters().clone(), self.runtime.limits());
                let plan = plans::gradient_norms(&self.model, &parameters, &limits)?;
                self.runtime.load(&plan)?
            }
        };
        self.runtime.submit(false, &[&plan])?;
        let sites = 0..=self.model.sublayers();
        let names: Vec<String> = sites.map(norms::gradient_name).collect();
        let sums = self.runtime.read(&plan, &names).await;
        self.gradients.plan = Some(plan);
        let norm = |sum: &Values| {
            let sum = sum.to_f64();
            (sum[1] == 0.0)
                .then(|| sum[0].sqrt())
                .filter(|norm| norm.is_finite())
        };
        Ok(sums?.iter().map(norm).collect())
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
            let (rows, columns) = (values.to_f64(), routing.sources.len());
            // Heads of a token lie one after the other: their mean.
            let heads = (rows.len() / columns / batch.len()).max(1);
            let mean = |token: &[f64]| -> Vec<f64> {
                let of = |column: usize| token.iter().skip(column).step_by(columns).sum::<f64>();
                (0..columns).map(|c| of(c) / heads as f64).collect()
            };
            let each = rows.chunks(heads * columns).map(mean);
            TokenWeights {
                routing: routing.clone(),
                weights: if routing.shared {
                    each.cycle().take(ids.len()).collect()
                } else {
                    each.take(ids.len()).collect()
                },
            }
        };
        Ok(self.routing.iter().zip(&read).map(cut).collect())
    }

    /// Held-out loss of the first validation batches (at most `batches`), without edits and with them, batch by batch. The
    /// edits of one read are done in their order. Nothing that a step uses is changed.
    ///
    /// # Errors
    /// If the mechanism has no depth weights, an edit names a read or a source that does not exist, or the device fails.
    pub async fn held_out(&mut self, edits: &[SiteEdit], batches: usize) -> Result<HeldOut> {
        let edited = match self.edited.take() {
            Some(edited) => edited,
            None => {
                let (parameters, limits) = (self.parameters().clone(), self.runtime.limits());
                let plan =
                    plans::intervention(&self.model, &parameters, self.config.batch, &limits)?;
                Edited {
                    plan: self.runtime.load_model(&plan)?,
                    routing: plan.routing,
                }
            }
        };
        let losses = self.measure(&edited, edits, batches).await;
        self.edited = Some(edited);
        losses
    }

    async fn measure(
        &mut self,
        edited: &Edited,
        edits: &[SiteEdit],
        batches: usize,
    ) -> Result<HeldOut> {
        let refuse = |message: String| Error::Op {
            op: "intervene",
            message,
        };
        if edited.routing.is_empty() {
            let kind = self.model.residual.kind();
            return Err(refuse(format!(
                "`{kind}` has no depth weights that could be edited"
            )));
        }
        for edit in edits {
            let exists = |read: &Routing| (read.site, read.stream) == (edit.site, edit.stream);
            if !edited.routing.iter().any(exists) {
                let message = format!("site {} has no stream {}", edit.site, edit.stream);
                return Err(refuse(message));
            }
        }
        let mut values = Vec::new();
        for read in &edited.routing {
            let own: Vec<RouteEdit> = edits
                .iter()
                .filter(|edit| (edit.site, edit.stream) == (read.site, read.stream))
                .map(|edit| edit.edit)
                .collect();
            let columns = read.sources.len();
            let sum_to_one = read.weighting == Weighting::Softmax;
            values.push([
                edit_values(columns, &[], sum_to_one)?,
                edit_values(columns, &own, sum_to_one)?,
            ]);
        }
        let shape = self.shape();
        let count = self.data.eval_batch_count(shape, batches);
        let mut losses = [Vec::new(), Vec::new()];
        for (which, losses) in losses.iter_mut().enumerate() {
            for (number, values) in values.iter().enumerate() {
                let name = edit_name(number);
                self.runtime
                    .write_input(&edited.plan, &name, Data::F64(&values[which]))?;
            }
            for index in 0..count {
                let batch = self.data.eval_batch(index, shape);
                self.runtime
                    .write_batch(&edited.plan, &batch.ids, &batch.labels)?;
                self.runtime.submit(false, &[&edited.plan])?;
                let wanted = [plans::ROW_LOSSES.to_owned()];
                let read = self.runtime.read(&edited.plan, &wanted).await?;
                let rows = read[0].to_f64();
                let sum: f64 = rows[..batch.counted].iter().sum();
                losses.push(sum / batch.counted.max(1) as f64);
            }
        }
        let [clean, edited] = losses;
        Ok(HeldOut { clean, edited })
    }
}
