//! An ATSC 8-VSB receiver and transmitter.
//!
//! Sources: ATSC A/53 Part 2 (transmission system) and A/74 (receiver guidelines).

pub mod blocks;
pub mod code;
pub mod field;
pub mod monitor;
pub mod params;
pub mod rx;
pub mod segment;
pub mod tx;

pub use millstream_dsp::Sample;
