//! Registers of the device's blocks, and its asynchronous messages (facts page, section 9).

mod client;
mod events;
mod pump;
mod sequence;

pub use client::{Control, ControlCounters};
pub use events::ChannelEvents;
