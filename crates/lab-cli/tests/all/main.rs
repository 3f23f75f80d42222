//! The `millstream-lab` command, run as a user would, and what the pages say about both commands.
//!
//! One program holds all of these tests, because linking dominates the build time.

mod bench_atsc;
mod bench_buffer;
mod bench_packets;
mod bench_rate;
mod bench_soak;
mod bench_wait;
#[path = "../../../cli/tests/all/common/mod.rs"]
mod common;
mod documents;
mod lab;
mod latency;
mod latency_launch;
mod latency_port;
mod options;
mod usage;
mod values;

/// The program that is run: it has the verbs of `millstream`, too.
const PROGRAM: &str = env!("CARGO_BIN_EXE_millstream-lab");
