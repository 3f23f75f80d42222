//! The block library, from outside.
//!
//! One program contains all of these tests, because linking is the expensive part.

mod estimates;
mod fm;
mod iio_source;
mod registry;
mod sigmf;
mod sigmf_fields;
mod sigmf_truth;
mod spectrum;
mod udp;
