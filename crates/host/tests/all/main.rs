//! The machine, from outside.
//!
//! One program holds all of these tests: linking is what costs.

mod doctor_cards;
mod ethtool;
mod journal;
mod netlink;
mod partition;
mod shield;
