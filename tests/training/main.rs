//! Training: optimiser, schedules, trainer.

mod expert_bias;
mod mechanisms;
mod muon;
mod optim;
mod repeatable;
mod schedule;
mod tasks;
