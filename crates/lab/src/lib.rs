//! Measurements: the rates that a machine, a link and a radio sustain, and the buffers that follow.
//!
//! | module | idea |
//! | --- | --- |
//! | [`atsc`] | the ATSC receiver: costs, limits, pictures, beside GNU Radio's |
//! | [`buffer`] | the law: worst-case latency × rate = buffer |
//! | [`budget`] | the load of a stream on a link |
//! | [`choice`] | the safest link that meets a need |
//! | [`convert`] | sample conversion beside a copy and beside UHD |
//! | [`explain`] | the cause of a late answer, from a trace |
//! | [`gnuradio`] | GNU Radio as a peer that takes requests |
//! | [`graph`] | the runtime beside a hand-written loop and GNU Radio |
//! | [`hand_over`] | the ring between two threads beside queues behind a lock |
//! | [`irq`] | from a converter's edge to the user who reads its samples |
//! | [`lag`] | the lag of a consumer behind a radio's clock |
//! | [`load`] | load during a measurement, with proof of its work |
//! | [`faults`] | the outcome of a radio's streams under each fault |
//! | [`packets`] | packets a second over any link, their cost, round trips |
//! | [`response`] | how much later a change reaches the antenna with a larger buffer |
//! | [`rate`] | the rate that a host sustains with a radio |
//! | [`soak`] | hours of rounds: books that agree, memory that does not grow |
//! | [`stations`] | where the time of a turnaround passes |
//! | [`timer`] | the latency of a thread after its timer |
//! | [`trial`] | a test of the buffer law on a scaled clock |
//! | [`turnaround`] | from received samples to the earliest answer |
//! | [`uhd`] | UHD's `benchmark_rate` as a peer |
//! | [`vfio`] | a device that VFIO gives to a program, and what it cannot reach |
//! | [`search`] | the highest rate and the smallest buffer that hold |
//! | [`CaseRuns`] | what the rounds of an experiment gave for a case |
//! | [`Host`] | this machine as the place where a measurement plan runs |

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
pub mod hand_over;
mod helper;
mod host;
pub mod irq;
pub mod lag;
pub mod load;
mod named;
pub mod packets;
pub mod rate;
pub mod response;
mod runs;
pub mod search;
pub mod soak;
pub mod stations;
pub mod timer;
pub mod trial;
pub mod turnaround;
pub mod uhd;
pub mod vfio;

pub use budget::{EthernetLink, LinkBudget, WireFormat};
pub use direction::Direction;
pub use host::{Host, Keep};
pub use lag::Lag;
pub use runs::CaseRuns;
pub use search::Grid;
