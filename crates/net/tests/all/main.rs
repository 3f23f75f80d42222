//! Tests of the user-space IPv4 host from outside. One program has all of them, because linking is
//! the main cost.

mod exercise;
mod refusals;
mod stack_hostile;
mod stack_no_allocation;
