//! Tests of the planner's public interface.
//!
//! One program holds all of these tests: linking is the main cost.

mod adapt;
