//! The emulated radio, from outside.
//!
//! One program holds all of these tests: linking is what costs.

mod faults;
mod host;
mod loopback;
