//! A networked radio in software.
#![allow(dead_code)]

pub mod antenna;
mod config;
mod device;
mod counters;
mod error;
mod mailbox;
mod rpc;
mod time;

pub use config::{CHANNELS, RATE_RANGE_HZ, RadioConfig};
pub use counters::CounterSnapshot;
pub use error::{ANTENNA_FORMS, Error};
pub use time::{SampleClock, Timekeeper};
