//! Batches: many runs of one graph. A [`Manifest`] names recordings, a graph and parameters, and
//! [expands](Batch::of) to [`Task`]s. An engine runs them: worker processes here, or a cluster's
//! own; [`ResultFolder`] keeps what they made. There is no scheduler here.
//!
//! A task is named by a hash of everything that decides its result. So a task that is done is
//! recognised by its name alone, and running a manifest again does only what is missing.

pub mod engine;
pub mod slurm;

mod batch;
mod claim;
mod cpus;
mod early_stop;
mod error;
mod heat_map;
mod identity;
mod manifest;
mod recordings;
mod results;
mod states;
mod table;

pub use batch::{Batch, Task};
pub use claim::{Claim, TaskClaim};
pub use cpus::CpuBudget;
pub use early_stop::{Outlook, TaskOutcome};
pub use error::BatchError;
pub use heat_map::{HeatMap, MapRequest};
pub use manifest::{Best, EarlyStop, Manifest};
pub use results::{ResultFolder, TaskFailure, TaskResult};
pub use states::TaskState;
pub use table::csv;
