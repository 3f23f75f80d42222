//! What observes a graph: taps, memory, shape, costs, latency, the watchdog. None of it changes
//! what the graph computes.

pub(crate) mod latency;
pub mod memory;
mod profile;
mod shape;
mod tap;
mod watchdog;

pub use latency::LatencyStats;
pub(crate) use latency::{Budget, LatencyBoard, Marks, Meters};
pub use memory::{MemoryError, PathMemory, PathStage};
pub use millstream_stats::LatencyHistogram;
pub use profile::{BlockCost, EdgeCost, Profile};
pub use shape::{BlockShape, EdgeShape, Shape};
pub(crate) use watchdog::{BlockScene, RunningBlock, Scene, WatchdogState};
pub use watchdog::{Stall, StallReason, Why};
