//! The block library, from outside.
//!
//! One program contains all of these tests, because linking is the expensive part.

mod fm;
mod registry;
mod sigmf;
mod spectrum;
mod udp;
