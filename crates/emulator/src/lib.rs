//! A networked radio in software: an E320, N310 or other device by its network behaviour.
//!
//! It implements the protocols of stock UHD 4.0 to 4.11: MPM discovery (UDP 49600), MessagePack-RPC
//! and gRPC (TCP 49601) and RFNoC over CHDR (UDP 49153, or the port from RPC). Its channels receive
//! an [`antenna`], paced by a [`SampleClock`] that can run slower or faster than the wall clock.
//! "Facts section n" in this crate names sections of the project's fact page
//! `rfnoc-chdr-protocol.md`.
//!
//! ```
//! use millstream_emulator::{Radio, RadioConfig};
//!
//! let radio = Radio::start(RadioConfig {
//!     discovery_port: 0,
//!     rpc_port: 0,
//!     chdr_port: 0,
//!     rx_antennas: vec!["tone:1e6,0.5".to_owned()],
//!     ..RadioConfig::default()
//! })?;
//! println!("CHDR on {}", radio.chdr_addr());
//! let counters = radio.stop();
//! assert_eq!(counters.rx_overruns, 0);
//! # Ok::<(), millstream_emulator::Error>(())
//! ```
//!
//! | module | purpose |
//! | --- | --- |
//! | `radio` | ports and threads |
//! | `stepped` | the CHDR side alone, stepped by its owner, for simulations |
//! | `device_loop` | the body of the thread that runs the device |
//! | `links` | the receive sides of the links |
//! | `discovery`, `rpc` | the management side |
//! | `device` | the CHDR side: pure state machines, time is an argument |
//! | `time` | sample clock and timekeeper |
//! | `front_end` | oscillators, gains, filters and switches |
//! | [`scene`] | the stations that its antennas hear |
//! | `personality` | the kinds of device as data |
//! | `generation` | the versions of UHD as data |
//! | [`faults`] | failures on demand; `control_channel` switches them from outside |
//! | `tcp` | a bounded server of small requests, for RPC and the control channel |
//! | `converter` | DDC and DUC: registers, shift, gain |
//! | [`antenna`] | the received signals of a channel |
//! | `tx_out` | the transmitted samples of a channel, on disk |
//! | `mailbox`, `counters` | commands and counts shared by threads |

pub mod antenna;
mod broadcast;
mod config;
mod control_channel;
mod converter;
mod counters;
mod device;
mod device_loop;
mod discovery;
mod error;
pub mod faults;
mod front_end;
mod generation;
mod links;
mod mailbox;
mod personality;
mod radio;
mod rpc;
pub mod scene;
mod stepped;
mod tcp;
mod time;
mod tx_out;

pub use config::{RadioConfig, SecondLink};
pub use counters::CounterSnapshot;
pub use device::{RxBand, RxWatcher};
pub use error::Error;
pub use faults::{FaultError, FaultState, Faults, fault_forms};
pub use generation::UhdGeneration;
pub use personality::{ClockRates, DeviceKind};
pub use radio::{Radio, RunningRadio};
pub use stepped::SteppedRadio;
pub use time::{DeviceClock, SampleClock};
pub use tx_out::{PlayedSamples, PlayedStretch};
