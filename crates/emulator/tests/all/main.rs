//! Tests of the emulated radio, from outside.
//!
//! One program has all of these tests, because linking takes the most time.

mod faults;
mod host;
mod loopback;
