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
mod confidence;
mod cpus;
mod early_stop;
mod error;
mod heat_map;
mod identity;
mod join;
mod manifest;
mod parquet;
mod recordings;
mod results;
mod split;
mod states;
mod table;
mod task_list;

pub use batch::{Batch, Task, TaskPart};
pub use claim::{Claim, TaskClaim};
pub use confidence::Confidence;
pub use cpus::CpuBudget;
pub use early_stop::{Outlook, TaskOutcome};
pub use error::BatchError;
pub use heat_map::{HeatMap, MapRequest};
pub use join::{Joined, Joiner, Mark, PartStream, Refusal, Seam};
pub use manifest::{Best, EarlyStop, Manifest, Split};
pub use results::{ResultFolder, TaskFailure, TaskResult};
pub use split::{Cuts, PartRange};
pub use states::TaskState;
pub use table::ResultTable;
