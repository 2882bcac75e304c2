//! Training: optimiser, schedules, trainer.

mod optim;
mod repeatable;
mod schedule;
mod tasks;
