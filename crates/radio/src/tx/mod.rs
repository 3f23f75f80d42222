//! Transmit streams: any buffer in, whole trains of packets out, every sample accounted for.
//!
//! ```text
//! caller's slice ─▶ conversion into the train ─▶ window (credit) ─▶ one call per train ─▶ device
//!                                                   ▲                    └─▶ flight (record)
//!       stream status ─▶ intake ────────────────────┴─▶ flight ─▶ ledger
//! ```

mod account;
mod audit;
mod channel;
mod deficit;
mod flight;
mod group;
mod handshake;
mod intake;
mod lates;
mod ledger;
mod meta;
mod recover;
mod send;
mod streamer;
mod train;
mod window;

pub use channel::TxChannel;
pub use group::TxGroup;
pub use ledger::{TxCause, TxImbalance, TxLedger};
pub use meta::{TxArgs, TxCounters, TxError, TxEvent, TxMetadata, TxSent};
pub use recover::{ASK_AFTER, ASKS, RECOVERY_MAX};
pub use streamer::TxStreamer;
