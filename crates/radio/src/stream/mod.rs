//! Receive streams: samples with time, and a cause for every loss.
//!
//! A datagram's way to the caller's slice:
//! ```text
//! streamer ─▶ core ─▶ numbers: next, behind a gap, or old
//!              │  └─▶ books: the gap's cause, the ledger
//!              ▼
//!            held ─▶ streamer: converted into the slice ─▶ core: credit, the report that is due
//! ```
//! Beside it: `run` is what the radio was told, `recovery` what is asked for after an overrun or a
//! silence, `silence` for how long nothing came, `reorder` the packets that came early.

mod arrival;
mod books;
mod core;
mod credit;
mod group;
mod meta;
mod numbers;
mod opening;
mod rate;
mod recovery;
mod remote;
mod reorder;
mod run;
mod silence;
mod streamer;

pub(crate) use credit::Credit;
pub use group::{GroupMetadata, RxGroup};
pub use meta::{RxArgs, RxCounters, RxError, RxEvent, RxMetadata};
pub use opening::StreamPath;
pub(crate) use opening::open as open_rx;
pub use rate::StreamRate;
pub use remote::{RemoteDestination, RemoteRxStream};
pub use silence::SAMPLES_STOPPED;
pub use streamer::RxStreamer;
