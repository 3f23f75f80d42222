//! The tuner: searches plans by measuring, and keeps one only when it is better beyond noise.
//!
//! - A [`PlanMeasurer`] measures a plan. [`Rehearsal`] does it with a graph file; tests simulate
//!   machines.
//! - A [`Space`] says which plans there are: layouts of partitions, sizes of rings, waiting, CPUs.
//!   What was written by hand ([`Pins`](millstream_flow::Pins)) is the same in all of them.
//! - [`tune`] goes through the space stage by stage. In a stage all candidates *race*: they are
//!   measured in turns with the default, and the hopeless ones leave early. The fastest then has a
//!   *duel* with the plan kept so far. A race is for choosing, and whoever wins a race of many has
//!   been lucky too; so the duel counts only pairs measured after it, and the plan changes only
//!   when the interval of their ratio is above 1. At the end the plan that was found meets the
//!   default in a last duel; unless it wins, the default stays.
//! - A [`PlanStore`] keeps what was found by machine and graph, and [`drift`] says when it no
//!   longer describes what is seen.
//!
//! Everything here but [`Rehearsal`] and [`PlanStore`] is free of clocks, files and chance: time is
//! what the trial says it took, randomness comes from a seed.

mod axis;
mod cpus;
pub mod drift;
mod grid;
mod layout;
mod log;
mod machine;
mod paired_test;
mod race;
mod rehearsal;
mod search;
mod session;
mod shape;
mod sift;
#[cfg(test)]
mod simulated;
mod space;
pub mod statistics;
mod store;
mod sweep;
#[cfg(test)]
mod tables;

pub use log::{AttemptResult, Percent, PlanAttempt};
pub use machine::MachineDescription;
pub use rehearsal::{Length, Objective, Rehearsal, RehearsalError};
pub use search::{Tuned, tune};
pub use session::{PlanMeasurement, PlanMeasurer, Settings, TrialError, TuneError, TuningProgress};
pub use space::{PlanLayout, Space, TuningStage};
pub use statistics::RatioEstimate;
pub use store::{PlanKey, PlanStore, PlanStoreError, StoreFile, StoredPlan};
pub use sweep::{ExhaustiveSearch, sweep};
