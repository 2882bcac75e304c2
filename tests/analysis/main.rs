//! Analyses: golden vectors, closed cases, and the same on every device.

mod bootstrap;
mod cka;
mod rank;
mod sources;
mod study;
