//! Studies of a model at one moment, on sequences of the validation part that never change: what its routing does, what its
//! states are like, and what each is worth. Definitions stand in `docs/analyses.md`.
//!
//! [`Trainer::study`] loads a plan of its own and runs the model once, clean; the reports are made of that, or of further runs
//! with something replaced. Nothing that a step uses is changed. Every figure is a mean over sequences of means over tokens,
//! with an interval over sequences.

mod clean;
mod damage;
mod depth;
mod routes;
mod routing;
mod similarity;
mod spread;

pub use damage::{Corruption, Damage, Rescue};
pub use depth::DepthReport;
pub use routes::{RouteReport, RoutesReport};
pub use routing::{ExpertReport, GateReport, ReadReport, RoutingReport, StreamDivergence};
pub use similarity::{CrossStream, PairReport, Similarity, WithinStream};
pub use spread::{SpreadReport, StateRanks, StreamSources};

use serde::Serialize;

use super::Trainer;
use crate::analysis::Bootstrap;
use crate::data::EvalBatch;
use crate::error::{Error, Result};
use crate::executor::{Data, Values};
use crate::models::plans;
use crate::nn::experts::Routed;
use crate::nn::residual::states::corrupt_name;
use crate::nn::residual::{Gate, Routing, States, Weighting};
use crate::ops::edit_weights::{RouteEdit, edit_values};
use crate::runtime::Loaded;
use crate::tape::{FREEZE, edit_name};

use clean::Clean;

/// How much is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StudyOptions {
    /// Sequences of the validation part, from its start; 0: all of it.
    pub sequences: usize,
    /// Draws of the intervals.
    pub draws: usize,
    /// Seed of the draws.
    pub seed: u64,
}

/// Tokens whose states are kept, all sequences together, about.
const KEPT_TOKENS: usize = 4096;

/// A model that has been looked at once.
#[derive(Debug)]
pub struct Study {
    plan: Loaded,
    sublayers: u32,
    dim: usize,
    routing: Vec<Routing>,
    gates: Vec<Gate>,
    experts: Vec<Routed>,
    states: States,
    context: usize,
    batches: Vec<EvalBatch>,
    /// Sequences of each batch that count.
    counts: Vec<usize>,
    /// Positions whose states are kept; the first of a sequence is not among them.
    kept: Vec<usize>,
    bootstrap: Bootstrap,
    clean: Clean,
}

/// A state, for people and files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StateName {
    /// Which stream.
    pub stream: u32,
    /// Position in the stream, 0 for the embedding.
    pub position: usize,
    /// `embed`, `block 1`, ..
    pub name: String,
}

impl Study {
    /// Sequences that were looked at.
    #[must_use]
    pub fn sequences(&self) -> usize {
        self.counts.iter().sum()
    }

    /// Tokens of a sequence.
    #[must_use]
    pub fn context(&self) -> usize {
        self.context
    }

    /// Tokens of a sequence whose states are kept.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Streams that have states.
    #[must_use]
    pub fn streams(&self) -> u32 {
        let streams = self.states.states.iter().map(|state| state.stream + 1);
        streams.max().unwrap_or(0)
    }

    /// The states, in the order of their numbers.
    #[must_use]
    pub fn state_names(&self) -> Vec<StateName> {
        let mut seen = vec![0; self.streams() as usize];
        let name = |state: &crate::nn::residual::State| {
            let position = &mut seen[state.stream as usize];
            *position += 1;
            StateName {
                stream: state.stream,
                position: *position - 1,
                name: state.name.clone(),
            }
        };
        self.states.states.iter().map(name).collect()
    }

    /// Numbers of the states of a stream, the embedding first.
    fn states_of(&self, stream: u32) -> Vec<usize> {
        let states = self.states.states.iter().enumerate();
        let own = states.filter(|(_, state)| state.stream == stream);
        own.map(|(number, _)| number).collect()
    }

    /// Means over the tokens of each of the first `sequences` sequences of some numbers a token.
    fn sequence_means(&self, rows: &[f64], sequences: usize) -> Vec<f64> {
        let each = rows.chunks_exact(self.context).take(sequences);
        each.map(|row| row.iter().sum::<f64>() / self.context as f64)
            .collect()
    }
}

impl Trainer {
    /// Load what analyses need and run it once, clean.
    ///
    /// # Errors
    /// If no whole sequence is there, or the device fails or is too small.
    pub async fn study(&mut self, options: &StudyOptions) -> Result<Study> {
        let shape = self.shape();
        let mut left = match options.sequences {
            0 => usize::MAX,
            sequences => sequences,
        };
        let (mut batches, mut counts) = (Vec::new(), Vec::new());
        for index in 0..self
            .data
            .eval_batch_count(shape, left.div_ceil(shape.batch))
        {
            let batch = self.data.eval_batch(index, shape);
            let count = (batch.counted / shape.context).min(left);
            if count == 0 {
                break;
            }
            left -= count;
            batches.push(batch);
            counts.push(count);
        }
        let sequences: usize = counts.iter().sum();
        if sequences == 0 || shape.context < 2 {
            let message = format!(
                "the validation part has {sequences} whole sequences of {} tokens; at least 1 of 2 is needed: use a longer \
                 text or a shorter model.context",
                shape.context
            );
            return Err(Error::Op {
                op: "study",
                message,
            });
        }
        let (parameters, limits) = (self.parameters().clone(), self.runtime.limits());
        let plan = plans::analysis(&self.model, &parameters, self.config.batch, &limits)?;
        let kept = (shape.context - 1).min((KEPT_TOKENS / sequences).max(8));
        let study = Study {
            plan: self.runtime.load_model(&plan)?,
            sublayers: self.model.sublayers(),
            dim: self.model.hidden_size as usize,
            routing: plan.routing,
            gates: plan.gates,
            experts: plan.experts,
            states: plan.states,
            context: shape.context,
            kept: (0..kept)
                .map(|k| 1 + k * (shape.context - 1) / kept)
                .collect(),
            bootstrap: Bootstrap::new(sequences, options.draws, options.seed),
            clean: Clean::default(),
            batches,
            counts,
        };
        self.leave_alone(&study)?;
        let clean = self.look_clean(&study).await?;
        Ok(Study { clean, ..study })
    }

    /// Nothing is edited, frozen or replaced.
    fn leave_alone(&mut self, study: &Study) -> Result<()> {
        for number in 0..study.routing.len() {
            self.edit(study, number, &[])?;
        }
        self.freeze(study, false)?;
        for boundary in &study.states.boundaries {
            for stream in 0..study.streams() {
                self.corrupt(study, boundary.site, stream, false)?;
            }
        }
        Ok(())
    }

    /// Edit the weights of read `number`.
    fn edit(&mut self, study: &Study, number: usize, edits: &[RouteEdit]) -> Result<()> {
        let read = &study.routing[number];
        let sum_to_one = read.weighting == Weighting::Softmax;
        let values = edit_values(read.sources.len(), edits, sum_to_one)?;
        let name = edit_name(number);
        self.runtime
            .write_input(&study.plan, &name, Data::F64(&values))
    }

    /// Freeze routing, where there is any that depends on the tokens.
    fn freeze(&mut self, study: &Study, on: bool) -> Result<()> {
        self.switch(study, FREEZE, on)
    }

    /// Replace the states of a stream at a boundary.
    fn corrupt(&mut self, study: &Study, site: u32, stream: u32, on: bool) -> Result<()> {
        self.switch(study, &corrupt_name(site, stream), on)
    }

    fn switch(&mut self, study: &Study, name: &str, on: bool) -> Result<()> {
        if !study.plan.places.contains_key(name) {
            return Ok(());
        }
        let value = [f64::from(u8::from(on))];
        self.runtime
            .write_input(&study.plan, name, Data::F64(&value))
    }

    /// Run batch `index` and read tensors.
    async fn run_study(
        &mut self,
        study: &Study,
        index: usize,
        names: &[String],
    ) -> Result<Vec<Values>> {
        let batch = &study.batches[index];
        self.runtime
            .write_batch(&study.plan, &batch.ids, &batch.labels)?;
        self.runtime.submit(false, &[&study.plan])?;
        self.runtime.read(&study.plan, names).await
    }
}
