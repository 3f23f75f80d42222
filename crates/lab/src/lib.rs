//! Measurements: what a machine, a link and a radio sustain, and the buffers that follow.
//!
//! | module | idea |
//! | --- | --- |
//! | [`atsc`] | the ATSC receiver: costs, limits, pictures, beside GNU Radio's |
//! | [`buffer`] | the law: worst-case latency × rate = buffer |
//! | [`budget`] | what a stream takes of a link |
//! | [`choice`] | the safest link that meets a need |
//! | [`convert`] | sample conversion beside a copy and beside UHD |
//! | [`explain`] | why an answer was late: the cause that a trace shows |
//! | [`gnuradio`] | GNU Radio as a peer that takes requests |
//! | [`graph`] | the runtime beside a hand-written loop and GNU Radio |
//! | [`irq`] | from a converter's edge to the user who reads its samples |
//! | [`lag`] | how far a consumer runs behind a radio's clock |
//! | [`load`] | load beside a measurement, proven to be there |
//! | [`faults`] | what a radio's streams make of everything that goes wrong |
//! | [`packets`] | packets a second over any link, what each costs, round trips |
//! | [`rate`] | what a host sustains with a radio |
//! | [`timer`] | how late a thread runs after its timer |
//! | [`trial`] | the buffer law put to the test on a scaled clock |
//! | [`turnaround`] | from received samples to the earliest answer |
//! | [`uhd`] | UHD's `benchmark_rate` as a peer |
//! | [`search`] | the highest rate that holds |
//! | [`Host`] | this machine as the place where a plan of measurements is carried out |

pub mod atsc;
pub mod budget;
pub mod buffer;
pub mod choice;
pub mod convert;
mod direction;
pub mod explain;
pub mod faults;
pub mod gnuradio;
pub mod graph;
mod host;
pub mod irq;
pub mod lag;
pub mod load;
pub mod packets;
pub mod rate;
pub mod search;
pub mod timer;
pub mod trial;
pub mod turnaround;
pub mod uhd;

pub use budget::{EthernetLink, LinkBudget, WireFormat};
pub use direction::Direction;
pub use host::{Host, Keep};
pub use lag::Lag;
pub use search::Grid;
