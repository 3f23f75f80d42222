//! Transmit streams: any buffer in, whole trains out, and the outcome of every sample.
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
//! caller's slice ─▶ conversion into the batch ─▶ window (credit) ─▶ one call per batch ─▶ device
//!                                                   ▲                    └─▶ record
//!       stream status ─▶ intake ────────────────────┴─▶ progress ─▶ ledger
//! ```
//!
//! | module | function |
//! | --- | --- |
//! | `send`, `filling`, `batch` | packets filled across calls, in the buffer that one call sends |
//! | `accounting`, `window` | the device's reports, and the credit, without port or clock |
//! | `order`, `progress` | the reports by their numbers; the packets that the device took |
//! | `pending_bursts` | the samples that were late |
//! | `ledger` | the outcome of every sample |
//! | `core` | the device's messages, and the schedule of the recovery, without port or clock |
//! | `member`, `recover` | one channel: polls, waits, the end; the recovery from silence |
//! | `opening`, `channel` | the set-up: the stream's and the radio's |
//! | `streamer` | the stream of one channel, or of several as one |
//! | `delay` | the time from sending to the report |

mod accounting;
mod channel;
mod core;
mod delay;
mod filling;
mod ledger;
mod member;
mod meta;
mod opening;
mod order;
mod pending_bursts;
mod progress;
mod recover;
mod send;
mod streamer;
mod train;
mod window;

pub use channel::TxChannel;
pub use delay::TxDelay;
pub use ledger::{TxCause, TxImbalance, TxLedger, TxRepeated, TxUnknown};
pub use member::TxMember;
pub(crate) use meta::SC16_FULL_SCALE;
pub use meta::{TxArgs, TxCounters, TxError, TxEvent, TxMetadata, TxSent};
pub use recover::{ASK_AFTER, ASKS, RECOVERY_MAX};
pub use streamer::{TX_CHANNELS_MAX, TxStreamer};
pub(crate) use window::report_period;
