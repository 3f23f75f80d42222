//! The block library, from outside.
//!
//! One program holds all of these tests: linking is what costs.

mod fm;
mod registry;
mod sigmf;
mod spectrum;
mod udp;
