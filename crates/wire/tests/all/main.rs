//! Packet formats, from outside.
//!
//! One program holds all of these tests: linking is what costs.

mod exercise;
mod golden;
mod hostile;
mod internet_golden;
mod internet_oracle;
mod round_trip;
