//! Finds plans for flowgraphs.
//!
//! - [`place`] finds the best plan for measured costs on a machine.
//! - [`tune`](mod@tune) finds a better plan for a graph on a machine by measuring.
//! - [`adapt`] moves the blocks of a running graph when their load shifts.

pub mod adapt;
pub mod place;
pub mod tune;
