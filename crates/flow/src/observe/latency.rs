//! Counts the items under way between a source and its sinks, and keeps to the bound that a plan
//! sets ([`Latency`](crate::Latency)).

mod meter;
mod paths;

pub use meter::LatencyStats;
pub(crate) use meter::{Budget, LatencyBoard, Marks, Meters};
