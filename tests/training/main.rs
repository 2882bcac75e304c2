//! Training: optimiser, schedules, trainer.

mod optim;
mod schedule;
