//! Receive streams: samples with time, and a cause for every loss.
//!
//! A datagram's way to the caller's slice:
//! ```text
//! streamer ─▶ member ─▶ core ─▶ numbers: next, behind a gap, or old
//!                        │  └─▶ books: the gap's cause, the ledger
//!                        ▼
//!                      held ─▶ member: converted into the slice ─▶ core: credit, the report due
//! ```
//! A `streamer` has a `member` for each channel, and aligns several in time.
//!
//! Beside it: `run` is what the radio was told, `recovery` what is asked for after an overrun or a
//! silence, `silence` for how long nothing came, `reorder` the packets that came early.

mod arrival;
mod books;
mod core;
mod credit;
mod member;
mod meta;
mod numbers;
mod opening;
mod rate;
mod recovery;
mod reorder;
mod run;
mod silence;
mod streamer;

pub(crate) use credit::Credit;
pub use member::RxMember;
pub(crate) use member::{check_length, samples_per_packet};
pub use meta::{RxArgs, RxCounters, RxError, RxEvent, RxMetadata};
pub use opening::StreamPath;
pub(crate) use opening::{RxOpening, open as open_rx};
pub use rate::StreamRate;
pub(crate) use rate::next_on_grid;
pub use silence::SAMPLES_STOPPED;
pub use streamer::{RX_CHANNELS_MAX, RxStreamer};
