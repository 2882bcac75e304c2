//! Training: optimiser, schedules, trainer.

mod mechanisms;
mod optim;
mod repeatable;
mod schedule;
mod tasks;
