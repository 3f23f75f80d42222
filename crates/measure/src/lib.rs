//! Records of measurements, their statistics, and their presentation. This crate does not measure.
//!
//! | module | idea |
//! | --- | --- |
//! | [`record`], [`observed`] | the one format of results; latencies in the order of time |
//! | [`explained`] | the causes of single late answers |
//! | [`load`] | profiles of the load during a measurement, and the machine's activity meanwhile |
//! | [`failure`] | a start without a result, stored with its run |
//! | [`statistics`] | the one figure of a start, and of a set of starts |
//! | [`extreme`] | the tail beyond the measured values, with its uncertainty |
//! | [`design`] | runs by plan: restarts, random order, variances, a stop rule |
//! | [`compare`] | significant differences between results |
//! | [`store`] | the database of results |
//! | [`mod@reference`] | published figures of other projects |
//! | [`report`], [`picture`] | a page for people, with figures; a histogram for the terminal |

pub mod compare;
pub mod design;
pub mod explained;
pub mod extreme;
pub mod failure;
pub mod load;
pub mod observed;
pub mod picture;
pub mod record;
pub mod reference;
pub mod report;
pub mod statistics;
pub mod store;

pub use failure::Failure;
pub use observed::Observed;
pub use record::{Measured, Record};
