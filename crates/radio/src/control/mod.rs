//! Registers of the device's blocks, and its asynchronous messages.

mod access;
mod client;
mod events;
mod numbers;
mod pump;
mod sequence;

pub(crate) use access::{AwaitedAccess, RegisterAccess};
pub use client::{Control, ControlCounters};
pub use events::ChannelEvents;
pub use pump::ControlReceiver;

use std::net::Ipv4Addr;

use crate::RadioError;

/// The registers of a device's blocks: a [`Control`], or words from another source.
pub trait Registers {
    /// Returns the device's address.
    fn address(&self) -> Ipv4Addr;

    /// Reads a register of the block at `port`.
    ///
    /// # Errors
    /// Those of [`Control::read`].
    fn read(&self, port: u16, address: u32) -> Result<u32, RadioError>;

    /// Writes a register; the write may be repeated without harm.
    ///
    /// # Errors
    /// Those of [`Control::write`].
    fn write(&self, port: u16, address: u32, value: u32) -> Result<(), RadioError>;
}
