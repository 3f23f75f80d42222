//! Packets a second, what each costs, and round trips: any link against plain kernel UDP, all in
//! turns in one run.
//!
//! Two processes ([`stage`]), each on its CPU and in its network, play [`job`]s: one is passive and
//! receives or answers, the other is active and sends. Both work on an [`end::End`], which is a
//! plain kernel socket, a port of ours, or bare frames on a link, so that the loops (`side`,
//! `ping`) are the same for all of them.

mod bulk;
pub mod end;
pub mod job;
pub mod limit;
pub mod measure;
mod pace;
mod ping;
pub mod plan;
pub mod port;
pub mod rows;
mod side;
pub mod stage;
mod table;
mod trace;
pub mod trips;
mod window;
pub mod worker;

pub use limit::{Limit, Seen, limit};
pub use measure::Measured;
pub use pace::Pace;
pub use ping::Probes;
pub use plan::{Path, Span, Wait, Workload};
pub use rows::{BASE, Row};
pub use stage::{Ground, Stage, StageError};
pub use table::{Line, Table};
pub use trace::untraceable;
pub use trips::{Round, TripTable};
pub use window::Counted;
