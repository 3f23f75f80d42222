//! Receive streams: samples with time, and a cause for every loss.
//!
//! ```text
//! datagrams ─▶ intake ─▶ tracker (order, time) ─▶ held packet ─▶ conversion to the caller's slice
//!                │            └─▶ gap ─▶ losses ─▶ ledger
//!                └─▶ credit ─▶ stream status
//! ```

mod arrival;
mod chain;
mod command;
mod credit;
mod entries;
mod expectation;
mod fates;
mod group;
mod handshake;
mod intake;
mod losses;
mod meta;
mod rate;
mod recover;
mod recv;
mod reorder;
mod streamer;
mod tracker;

pub(crate) use credit::Credit;
pub use group::{GroupMetadata, RxGroup};
pub use handshake::StreamPath;
pub(crate) use handshake::open as open_rx;
pub use meta::{RxArgs, RxCounters, RxError, RxEvent, RxMetadata};
pub use rate::StreamRate;
pub use streamer::RxStreamer;
