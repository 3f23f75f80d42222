//! What runs beside a measurement: load profiles as data, and what the machine did meanwhile.

mod machine;
mod profile;

pub use machine::Machine;
pub use profile::{Kind, Profile, ProfileError, Profiles, Spot, Worker};
