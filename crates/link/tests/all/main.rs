//! Links, from outside.
//!
//! One program holds all of these tests: linking is what costs.

mod capture;
mod fault;
mod no_allocation;
mod packet;
mod udp;
