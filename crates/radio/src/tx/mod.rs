//! Transmit streams: any buffer in, whole trains of packets out, every sample accounted for.
//!
//! ```no_run
//! use std::time::Duration;
//! use millstream_radio::{Complex32, Device, DeviceArgs, TxArgs, TxMetadata};
//!
//! let mut device = Device::open("addr=192.168.10.2".parse::<DeviceArgs>()?)?;
//! device.set_rate(6.25e6)?;
//! let mut stream = device.tx_stream(TxArgs::new(0))?;
//! let samples = vec![Complex32::new(0.5, 0.0); 1_000_000];
//! let soon = stream.time_ticks()? + 625_000;
//! let mut sent = stream.send(&samples, TxMetadata::at(soon).ending(), Duration::from_secs(1))?;
//! while !sent.end_of_burst {
//!     let rest = &samples[stream.ledger().accepted as usize..];
//!     sent = stream.send(rest, TxMetadata::now().ending(), Duration::from_secs(1))?;
//! }
//! println!("{:?}", stream.next_event(Duration::from_secs(1))?);
//! println!("{}", stream.finish());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ```text
//! caller's slice ─▶ conversion into the train ─▶ window (credit) ─▶ one call per train ─▶ device
//!                                                   ▲                    └─▶ record
//!       stream status ─▶ intake ────────────────────┴─▶ course ─▶ ledger
//! ```
//!
//! | module | what it does |
//! | --- | --- |
//! | `send`, `train` | packets filled across calls, in the buffer that one system call sends |
//! | `account` | the books, without port or clock: credit, what is on its way, what was lost |
//! | `window`, `audits` | the credit; how much the device has counted |
//! | `order`, `course`, `blind`, `record`, `missing` | which packets it took, and how often |
//! | `lates`, `ledger` | what was late; what became of every sample |
//! | `intake`, `recover` | what the device says; what to do when it says nothing |
//! | `handshake`, `channel` | the set-up: the stream's and the radio's |
//! | `group` | several streams as one |

mod accounting;
mod audits;
mod batch;
mod channel;
mod closing;
mod group;
mod handshake;
mod intake;
mod ledger;
mod meta;
mod missing;
mod missing_report;
mod order;
mod pending_bursts;
mod progress;
mod record;
mod recover;
mod send;
mod streamer;
mod window;

pub use channel::TxChannel;
pub use group::TxGroup;
pub use ledger::{TxCause, TxImbalance, TxLedger, TxRepeated, TxUnknown};
pub use meta::{TxArgs, TxCounters, TxError, TxEvent, TxMetadata, TxSent};
pub use recover::{ASK_AFTER, ASKS, RECOVERY_MAX};
pub use streamer::TxStreamer;
