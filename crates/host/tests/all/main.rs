//! Tests of the machine's settings through the public interface.
//!
//! One program holds all of these tests, because linking takes most of the time.

mod doctor_cards;
mod ethtool;
mod journal;
mod netlink;
mod partition;
mod shield;
