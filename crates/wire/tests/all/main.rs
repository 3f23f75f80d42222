//! Tests of packet formats, from outside.
//!
//! One program has all of these tests, because linking takes the most time.

mod exercise;
mod golden;
mod hostile;
mod internet_golden;
mod internet_oracle;
mod round_trip;
