//! Tests of the public interface to CPUs and threads.
//!
//! One program holds all of these tests: linking is the main cost.

mod limits;
mod recorded;
