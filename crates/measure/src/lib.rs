//! Records of measurements, their statistics, and their presentation. This crate does not measure.
//!
//! | module | idea |
//! | --- | --- |
//! | [`record`], [`observed`] | the one format of results; latencies in the order of time |
//! | [`explained`] | the causes of single late answers |
//! | [`load`] | profiles of the load during a measurement, and the machine's activity meanwhile |
//! | [`failure`] | a start without a result, stored with its run |
//! | [`histogram`], [`summary`] | latencies as a distribution; repeated figures in short |
//! | [`statistics`] | significant results from few starts |
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
pub mod summary;

pub use failure::Failure;
pub use millstream_cpu::{Histogram, histogram};
pub use observed::Observed;
pub use record::{Measured, Record};
pub use summary::Summary;
