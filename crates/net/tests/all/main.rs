//! The user-space IPv4 host, from outside. One program holds all of these tests: linking is what
//! costs.

mod exercise;
mod refusals;
mod stack_hostile;
mod stack_no_allocation;
