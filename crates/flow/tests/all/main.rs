//! Tests of the runtime's public interface.
//!
//! One program holds all of these tests: linking is the main cost.

mod chains;
#[path = "../common/mod.rs"]
mod common;
mod file;
mod graph;
mod latency;
mod messages;
mod mock;
mod move_messages;
mod moves;
mod plans;
mod ports;
mod pull;
mod run;
mod stalls;
mod tags;
mod tags_follow;
