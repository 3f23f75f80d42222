//! Measurements: what a machine, a link and a radio sustain, and the buffers that follow.
//!
//! | module | idea |
//! | --- | --- |
//! | [`atsc`] | the ATSC receiver: costs, limits, pictures, beside GNU Radio's |
//! | [`buffer`] | the law: worst-case latency × rate = buffer |
//! | [`budget`] | what a stream takes of a link |
//! | [`chart`] | charts as PNG |
//! | [`choice`] | the safest link that meets a need |
//! | [`convert`] | sample conversion beside a copy and beside UHD |
//! | [`gnuradio`] | GNU Radio as a peer that takes requests |
//! | [`graph`] | the runtime beside a hand-written loop and GNU Radio |
//! | [`histogram`] | latencies as a distribution; its picture is in [`picture`] |
//! | [`lag`] | how far a consumer runs behind a radio's clock |
//! | [`faults`] | what a radio's streams make of everything that goes wrong |
//! | [`packets`] | packets a second over any link, what each costs, round trips |
//! | [`rate`] | what a host sustains with a radio |
//! | [`trial`] | the buffer law put to the test on a scaled clock |
//! | [`turnaround`] | from received samples to the earliest answer |
//! | [`uhd`] | UHD's `benchmark_rate` as a peer |
//! | [`search`], [`summary`] | the highest rate that holds; repeated figures in short |

pub mod atsc;
pub mod budget;
pub mod buffer;
pub mod chart;
pub mod choice;
pub mod convert;
mod direction;
pub mod faults;
pub mod gnuradio;
pub mod graph;
pub mod histogram;
pub mod lag;
pub mod packets;
pub mod picture;
pub mod rate;
pub mod search;
pub mod summary;
pub mod trial;
pub mod turnaround;
pub mod uhd;

pub use budget::{Link, LinkBudget, WireFormat};
pub use direction::Direction;
pub use histogram::Histogram;
pub use lag::Lag;
pub use search::Grid;
pub use summary::Summary;
