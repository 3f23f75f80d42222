//! Receive streams: samples with time, and a cause for every loss.
//!
//! ```text
//!         RxStreamer: port, device                RxCore: neither, nor a clock
//! datagrams ────────────────▶ intake ─▶ tracker (order, time) ─▶ gap ─▶ losses ─▶ ledger
//! caller's slice ◀─ conversion ◀─ held packet ◀─┘     │
//! stream status ◀───────── report due ◀── credit ◀────┘
//! registers, new set-up ◀── stages ◀── step ◀── silence ◀── time
//! ```

mod arrival;
mod chain;
mod command;
mod core;
mod credit;
mod entries;
mod expectation;
mod fates;
mod gap_causes;
mod group;
mod handshake;
mod intake;
mod losses;
mod lost_end;
mod meta;
mod opening;
mod passed_over;
mod rate;
mod recover;
mod recv;
mod remote;
mod reorder;
mod silence;
mod stages;
mod state;
mod stopped;
mod streamer;
mod tracker;

pub(crate) use credit::Credit;
pub use group::{GroupMetadata, RxGroup};
pub use handshake::StreamPath;
pub(crate) use handshake::open as open_rx;
pub use meta::{RxArgs, RxCounters, RxError, RxEvent, RxMetadata};
pub use rate::StreamRate;
pub use remote::{RemoteDestination, RemoteRxStream};
pub use stopped::SAMPLES_STOPPED;
pub use streamer::RxStreamer;
