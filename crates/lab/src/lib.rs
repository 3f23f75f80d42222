//! Measurements: what a machine, a link and a radio sustain, and the buffers that follow.
//!
//! | module | idea |
//! | --- | --- |
//! | [`atsc`] | the ATSC receiver: costs, limits, pictures, beside GNU Radio's |
//! | [`buffer`] | the law: worst-case latency × rate = buffer |
//! | [`budget`] | what a stream takes of a link |
//! | [`chart`] | charts as PNG |
//! | [`choice`] | the safest link that meets a need |
//! | [`compare`] | whether results differ |
//! | [`convert`] | sample conversion beside a copy and beside UHD |
//! | [`design`] | runs by plan: restarts, random order, variances, a stop rule |
//! | [`explain`] | why an answer was late: the cause that a trace shows |
//! | [`extreme`] | the tail beyond what was seen, with its uncertainty |
//! | [`failure`] | a start that gave nothing, kept with its run |
//! | [`gnuradio`] | GNU Radio as a peer that takes requests |
//! | [`graph`] | the runtime beside a hand-written loop and GNU Radio |
//! | [`histogram`] | latencies as a distribution; its picture is in [`picture`] |
//! | [`irq`] | from a converter's edge to the user who reads its samples |
//! | [`lag`] | how far a consumer runs behind a radio's clock |
//! | [`load`] | load beside a measurement, proven to be there |
//! | [`faults`] | what a radio's streams make of everything that goes wrong |
//! | [`packets`] | packets a second over any link, what each costs, round trips |
//! | [`observed`], [`record`] | latencies in the order of time; the one format of results |
//! | [`rate`] | what a host sustains with a radio |
//! | [`mod@reference`], [`report`] | figures of others; a page for somebody who was not there |
//! | [`statistics`] | what few starts say for certain |
//! | [`store`] | where results stay |
//! | [`timer`] | how late a thread runs after its timer |
//! | [`trial`] | the buffer law put to the test on a scaled clock |
//! | [`turnaround`] | from received samples to the earliest answer |
//! | [`uhd`] | UHD's `benchmark_rate` as a peer |
//! | [`search`], [`summary`] | the highest rate that holds; repeated figures in short |

pub mod atsc;
pub mod budget;
pub mod buffer;
pub mod chart;
pub mod choice;
pub mod compare;
pub mod convert;
pub mod design;
mod direction;
pub mod explain;
pub mod extreme;
pub mod failure;
pub mod faults;
pub mod gnuradio;
pub mod graph;
pub mod histogram;
pub mod irq;
pub mod lag;
pub mod load;
pub mod observed;
pub mod packets;
pub mod picture;
pub mod rate;
pub mod record;
pub mod reference;
pub mod report;
pub mod search;
pub mod statistics;
pub mod store;
pub mod summary;
pub mod timer;
pub mod trial;
pub mod turnaround;
pub mod uhd;

pub use budget::{Link, LinkBudget, WireFormat};
pub use direction::Direction;
pub use failure::Failure;
pub use histogram::Histogram;
pub use lag::Lag;
pub use observed::Observed;
pub use record::{Measured, Record};
pub use search::Grid;
pub use summary::Summary;
