//! The load during a measurement: load profiles as data, and the machine's activity meanwhile.

mod machine;
mod profile;

pub use machine::MachineCounters;
pub use profile::{LoadKind, LoadProfile, LoadWorker, ProfileError, Profiles, Spot};
