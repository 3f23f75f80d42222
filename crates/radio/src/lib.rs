//! The host side of a networked radio.

mod args;
pub mod control;
pub mod convert;
pub mod discover;
mod error;
pub mod ledger;
pub mod mtu;
pub mod rpc;
#[cfg(test)]
mod testing;
pub mod topology;

pub use args::{DeviceArgs, OpenPort};
pub use error::RadioError;
pub use ledger::{Cause, Imbalance, Ledger};
pub use num_complex::Complex32;
