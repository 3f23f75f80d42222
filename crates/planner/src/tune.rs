//! The tuner: searches plans by measuring, and changes the plan only when the gain is beyond noise.
//!
//! - A [`PlanMeasurer`] measures a plan. [`Rehearsal`] does it with a graph file; tests simulate
//!   machines.
//! - A [`Space`] holds the plans to try: layouts of partitions, sizes of rings, wait modes, CPUs.
//!   Entries written by hand ([`Pins`](millstream_flow::Pins)) are the same in all of them.
//! - [`tune`] goes through the space stage by stage. In a stage all candidates are measured in
//!   interleaved rounds with the default, and the hopeless ones leave early. The fastest is then
//!   compared with the current plan in a *paired test*. The winner of many rounds was partly lucky;
//!   so the paired test counts only pairs measured after them, and the plan changes only when the
//!   confidence interval of their ratio is above 1. At the end the plan that was found is compared
//!   with the default in a last paired test; unless it wins, the default stays.
//! - A [`PlanStore`] stores the plans that were found by machine and graph, and [`drift`] finds
//!   when a stored plan no longer fits the measurements.
//!
//! Everything here but [`Rehearsal`] and [`PlanStore`] is free of clocks, files and chance: time is
//! reported by the measurer, randomness comes from a seed.

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
mod store;
mod sweep;
#[cfg(test)]
mod tables;

pub use log::{AttemptResult, Percent, PlanAttempt};
pub use machine::MachineDescription;
pub use millstream_stats::RatioEstimate;
pub use rehearsal::{Length, Objective, Rehearsal, RehearsalError};
pub use search::{Tuned, tune};
pub use session::{PlanMeasurement, PlanMeasurer, Settings, TrialError, TuneError, TuningProgress};
pub use space::{PlanLayout, Space, TuningStage};
pub use store::{PlanKey, PlanStore, PlanStoreError, StoreFile, StoredPlan};
pub use sweep::{ExhaustiveSearch, sweep};
