//! Analyses of a run's model: which there are, running them, and what they cost. Definitions stand in `docs/analyses.md`.

pub mod table;
pub mod tables;

use braid_engine::Result;
use braid_engine::trainer::study::{
    DepthReport, Rescue, RoutesReport, RoutingReport, Similarity, SpreadReport,
};
use braid_engine::trainer::{Study, StudyOptions, Trainer};
use serde::Serialize;

use crate::row;
use table::Table;

/// One analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Weights, sharpness, entropy, distance, gates, experts.
    Routing,
    /// Norms and gradient norms along depth.
    Depth,
    /// Ranks and source statistics.
    States,
    /// Similarity along and across streams.
    Similarity,
    /// Damage, rescue gain and necessity.
    Rescue,
    /// Routes by intervention.
    Routes,
}

impl Part {
    /// All of them, in the order of running.
    pub const ALL: [Self; 6] = [
        Self::Routing,
        Self::Depth,
        Self::States,
        Self::Similarity,
        Self::Rescue,
        Self::Routes,
    ];

    /// What a person calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Routing => "routing",
            Self::Depth => "depth",
            Self::States => "states",
            Self::Similarity => "similarity",
            Self::Rescue => "rescue",
            Self::Routes => "routes",
        }
    }
}

/// What an analysis took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Which; `study` is the clean run that all share.
    pub analysis: &'static str,
    /// Seconds.
    pub seconds: f64,
    /// The same in training steps of this run on this device.
    pub steps: Option<f64>,
}

/// What was asked for; the rest is absent.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Analyses {
    /// See [`Part::Routing`], and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routing: Option<RoutingReport>,
    /// Site by site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<Vec<DepthReport>>,
    /// States and sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub states: Option<SpreadReport>,
    /// All pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similarity: Option<Similarity>,
    /// Boundary by boundary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rescue: Option<Vec<Rescue>>,
    /// Edit by edit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routes: Option<RoutesReport>,
    /// What each took.
    pub costs: Vec<Cost>,
}

impl Analyses {
    /// Do one part of a study; returns its tables.
    ///
    /// # Errors
    /// If the device fails, or there is too little to look at.
    pub async fn run(
        &mut self,
        trainer: &mut Trainer,
        study: &Study,
        part: Part,
        seed: u64,
    ) -> Result<Vec<Table>> {
        Ok(match part {
            Part::Routing => tables::routing(self.routing.insert(study.routing_report(seed))),
            Part::Depth => tables::depth(self.depth.insert(trainer.depth_report(study).await?)),
            Part::States => tables::states(self.states.insert(study.spread_report())),
            Part::Similarity => tables::similarity(
                self.similarity
                    .insert(trainer.similarity(study, seed).await?),
            ),
            Part::Rescue => tables::rescue(self.rescue.insert(trainer.rescue(study).await?)),
            Part::Routes => tables::routes(self.routes.insert(trainer.routes(study).await?)),
        })
    }

    /// Costs in training steps of `seconds` each.
    pub fn in_steps(&mut self, seconds: f64) {
        for cost in &mut self.costs {
            cost.steps = (seconds > 0.0).then(|| cost.seconds / seconds);
        }
    }

    /// What each took, as a table.
    #[must_use]
    pub fn cost_table(&self) -> Table {
        let mut table = Table::new("cost", "cost", &["analysis", "seconds", "training steps"]);
        for cost in &self.costs {
            table
                .rows
                .push(row![cost.analysis, cost.seconds, cost.steps]);
        }
        table
    }
}

/// What was looked at, for the file.
#[derive(Clone, Debug, Serialize)]
pub struct Subject {
    /// Folder of the checkpoint.
    pub checkpoint: String,
    /// Updates done.
    pub step: u64,
    /// Where it was computed.
    pub device: String,
    /// Sequences of the validation part.
    pub sequences: usize,
    /// Tokens of each.
    pub context: usize,
    /// Tokens of each whose states were kept.
    pub kept: usize,
    /// Draws of the intervals, which hold 95 % of them.
    pub draws: usize,
    /// Seed of the draws.
    pub seed: u64,
}

impl Subject {
    /// Of a study.
    #[must_use]
    pub fn new(
        checkpoint: String,
        step: u64,
        device: String,
        study: &Study,
        options: &StudyOptions,
    ) -> Self {
        Self {
            checkpoint,
            step,
            device,
            sequences: study.sequences(),
            context: study.context(),
            kept: study.kept(),
            draws: options.draws,
            seed: options.seed,
        }
    }
}
