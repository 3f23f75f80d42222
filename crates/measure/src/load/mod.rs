//! What runs beside a measurement: load profiles as data, and what the machine did meanwhile.

mod machine;
mod profile;

pub use machine::MachineCounters;
pub use profile::{LoadKind, LoadProfile, LoadWorker, ProfileError, Profiles, Spot};
