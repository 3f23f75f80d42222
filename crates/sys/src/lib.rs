//! The machine: topology, affinity, scheduling, environment record.
//!
//! Facts are read below a root folder that is an argument (`/` for this machine), so a tree
//! recorded on another machine tests the parsers.

pub mod child;
mod cpu_set;
pub mod doctor;
mod environment;
pub mod ethtool;
pub mod folders;
pub mod iio;
pub mod journal;
pub mod netlink;
mod ntuple;
pub mod packet_threads;
pub mod pci;
pub mod sched;
pub mod shield;
pub mod thread;
pub mod threads;
mod topology;
pub mod trace;
pub mod usage;

pub use cpu_set::{CpuSet, ParseCpuSetError};
pub use environment::{CacheSize, Environment, Nic};
pub use topology::{Cache, Core, FULL_CAPACITY, Recorded, RecordedError, Topology, TopologyError};
