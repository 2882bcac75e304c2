//! Several trainings that differ in what is compared, and in nothing else.
//!
//! ```text
//! OUT/sweep.json                      the plan: variants in their order, and seeds
//! OUT/VARIANT/seed-N/                 a run like any other
//! OUT/VARIANT/seed-N.log              what its process said
//! OUT/results.json results.csv runs.csv
//! ```
//!
//! With one seed all variants have the same initial values for the parameters that they share, and see the same batches: random
//! numbers follow from the seed and the name of what they are for (decision 10 of the engine). So differences are formed
//! seed by seed ([`statistics`]).
//!
//! Nothing but the runs' own folders says how far a sweep is ([`outcome`]). One command trains one run, begins or resumes as its
//! folder asks, and does nothing if the run is finished ([`command`]): a sweep is those commands, started here
//! ([`jobs`]) or by anything else, and a look at what they left ([`gather`]).

pub mod command;
pub mod file;
pub mod gather;
pub mod jobs;
pub mod outcome;
pub mod plan;
pub mod seeds;
pub mod statistics;
pub mod summary;

pub use file::Changes;
pub use plan::{Planned, Sweep, Variant};
pub use seeds::Seeds;
