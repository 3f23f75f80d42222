//! What is done with measurements: records of them, what they say for certain, and how they are
//! shown. Nothing here measures.
//!
//! | module | idea |
//! | --- | --- |
//! | [`record`], [`observed`] | the one format of results; latencies in the order of time |
//! | [`explained`] | why single answers were late |
//! | [`load`] | profiles of the load beside a measurement, and what the machine did meanwhile |
//! | [`failure`] | a start that gave nothing, kept with its run |
//! | [`histogram`], [`summary`] | latencies as a distribution; repeated figures in short |
//! | [`statistics`] | what few starts say for certain |
//! | [`extreme`] | the tail beyond what was seen, with its uncertainty |
//! | [`design`] | runs by plan: restarts, random order, variances, a stop rule |
//! | [`compare`] | whether results differ |
//! | [`store`] | where results stay |
//! | [`mod@reference`] | figures of others |
//! | [`report`], [`chart`], [`picture`] | a page for people; charts as PNG and SVG |

pub mod chart;
pub mod compare;
pub mod design;
pub mod explained;
pub mod extreme;
pub mod failure;
pub mod histogram;
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
pub use histogram::Histogram;
pub use observed::Observed;
pub use record::{Measured, Record};
pub use summary::Summary;
