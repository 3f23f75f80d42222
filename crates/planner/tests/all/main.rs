//! The planner, from outside.
//!
//! One program holds all of these tests: linking is what costs.

mod adapt;
