//! The settings and facts of the machine: obstacles to real time (`doctor`), CPUs free of other
//! work (`shield`), a journal that restores changed settings, network devices (netlink, ethtool),
//! PCI cards, trace events, programs in the kernel, Industrial I/O.
//!
//! Facts are read below a root folder that is an argument (`/` for this machine), so a tree
//! recorded on another machine tests the parsers.

pub mod bpf;
pub mod child;
pub mod doctor;
pub mod ethtool;
pub mod iio;
pub mod journal;
pub mod kernel_log;
pub mod mapping;
pub mod namespace;
pub mod netlink;
mod ntuple;
pub mod packet_threads;
pub mod pci;
pub mod shield;
pub mod socket;
pub mod trace;
mod unique;
