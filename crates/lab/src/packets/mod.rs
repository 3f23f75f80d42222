//! Packets a second, their cost, and round trips: any link against plain kernel UDP, in interleaved
//! rounds of one run.
//!
//! Two processes ([`testbed`]), each on its CPU and in its network, play [`job`]s: one is passive
//! and receives or answers, the other is active and sends. Both work on an [`end::PathEnd`], which
//! is a plain kernel socket, a port of ours, or bare frames on a link, so that the loops (`side`,
//! `ping`) are the same for all of them.

mod budget;
mod bulk;
pub mod end;
pub mod job;
pub mod launch;
pub mod limit;
pub mod measure;
mod pace;
mod ping;
pub mod plan;
pub mod port;
pub mod round_trips;
pub mod rows;
mod side;
mod table;
pub mod testbed;
mod trace;
pub mod waiting;
mod window;
pub mod worker;

pub use budget::{PacketBudget, PacketCopies};
pub use limit::{LimitFigures, LimitingResource, limit};
pub use measure::RowMeasurement;
pub use pace::Pace;
pub use ping::Probes;
pub use plan::{Carriage, PacketWait, Span, Workload};
pub use round_trips::Round;
pub use rows::{BASE, PathRow};
pub use table::{PacketTable, RowResults, RowRun};
pub use testbed::{StageError, TestNetwork, Testbed};
pub use trace::untraceable;
pub use window::WindowCounts;
