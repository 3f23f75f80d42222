//! The block library, from outside.
//!
//! One program contains all of these tests, because linking is the expensive part.

mod disturbance;
mod estimates;
mod fm;
mod iio_source;
mod ranges;
mod registry;
mod sigmf;
mod sigmf_fields;
mod sigmf_truth;
mod spectrum;
mod udp;
