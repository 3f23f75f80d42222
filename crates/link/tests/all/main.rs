//! Links, from outside.
//!
//! One program has all of these tests, because linking is the main cost.

mod capture;
mod fault;
mod no_allocation;
mod packet;
mod udp;
