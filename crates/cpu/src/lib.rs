//! CPUs and the threads on them: topology, sets, affinity, scheduling classes, CPU time, alarms and
//! how late a thread is after them, listeners that cost none, and the record of a measurement's
//! environment.
//!
//! Facts are read below a root folder that is an argument (`/` for this machine), so a tree
//! recorded on another machine tests the parsers.

pub mod alarm;
pub mod counters;
mod cpu_set;
mod environment;
pub mod folders;
mod hash;
pub mod listener;
pub mod occupancy;
pub mod proc;
pub mod sched;
pub mod subnormals;
pub mod thread;
pub mod threads;
mod topology;
pub mod usage;

pub use cpu_set::{CpuSet, ParseCpuSetError};
pub use environment::{CacheSize, Environment, KernelOrigin, Nic, NicCoalescing, sha256};
pub use hash::fnv1a;
pub use topology::{
    Cache, Core, FULL_CAPACITY, RecordedError, RecordedMachine, Topology, TopologyError,
};
