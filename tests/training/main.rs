//! Training: optimiser, schedules, trainer.

mod mechanisms;
mod muon;
mod optim;
mod repeatable;
mod schedule;
mod tasks;
