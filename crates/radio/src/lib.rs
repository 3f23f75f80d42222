//! The host side of a networked radio.

pub mod convert;
pub mod ledger;

pub use ledger::{Cause, Imbalance, Ledger};
pub use num_complex::Complex32;
