//! Measurements: what a machine, a link and a radio sustain, and the buffers that follow.
//!
//! | module | idea |
//! | --- | --- |
//! | [`buffer`] | the law: worst-case latency × rate = buffer |
//! | [`budget`] | what a stream takes of a link |
//! | [`histogram`] | latencies as a distribution; its picture is in [`picture`] |

pub mod budget;
pub mod buffer;
pub mod histogram;
pub mod picture;

pub use budget::{Link, LinkBudget, WireFormat};
pub use histogram::Histogram;
