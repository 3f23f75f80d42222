//! The host side of a networked radio: discover, open, receive, transmit.
//!
//! Internal: programs use the crate `millstream-client`, which stands on this one and tells of each
//! loss. Items here may change with each version.
//!
//! ```no_run
//! use std::time::Duration;
//! use millstream_radio::{Complex32, Device, DeviceArgs, RxArgs};
//!
//! let mut device = Device::open("addr=192.168.10.2".parse::<DeviceArgs>()?)?;
//! device.set_rate(6.25e6)?;
//! let mut stream = device.rx_stream(RxArgs::new(0))?;
//! stream.start_finite(1_000_000, None)?;
//! let mut samples = vec![Complex32::default(); 4096];
//! while stream.is_running() {
//!     let meta = stream.recv(&mut samples, Duration::from_secs(1))?;
//!     println!("{:?}: {} samples at {:?}", meta.event, meta.samples, meta.time_ticks);
//! }
//! stream.finish().balance()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The protocol is that of RFNoC devices with MPM, as UHD 4.3 speaks it. The layers, from the
//! outside in:
//!
//! | module | function |
//! | --- | --- |
//! | [`mod@discover`] | finds devices by broadcast |
//! | [`rpc`] | MessagePack-RPC, gRPC and the claim |
//! | [`mtu`] | measures the path |
//! | [`topology`] | management packets: endpoints and routes |
//! | [`control`] | register access and asynchronous messages |
//! | [`client_zero`], [`graph`] | the parts of the device; the chains from radios to endpoints |
//! | [`channel`], [`dsp_block`] | one receive channel; one channel of a DDC or DUC |
//! | [`front_end`] | frequency, gain, bandwidth, antenna |
//! | [`stream`] | receive streams with credit, time and events |
//! | [`tx`] | transmit streams: credit, bursts, events, recovery |
//! | [`noc`] | blocks that are no radio: test signals, memory |
//! | [`block`] | streams as flowgraph sources and sinks |
//! | [`convert`], [`ledger`] | sample formats; the outcome of every sample |

mod args;
pub mod block;
pub mod channel;
pub mod client_zero;
mod clock;
pub mod control;
pub mod convert;
mod deadline;
pub mod device;
pub mod discover;
pub mod dsp_block;
mod error;
pub mod examine;
pub mod front_end;
pub mod generation;
pub mod graph;
mod identity;
mod lease;
pub mod ledger;
pub mod mtu;
pub mod noc;
mod opening;
mod remote;
pub mod rpc;
mod shared_port;
pub mod stream;
#[cfg(test)]
mod testing;
pub mod topology;
pub mod tx;

pub use args::{DeviceArgs, OpenPort};
pub use clock::Clock;
pub use convert::StreamSample;
pub use deadline::OpenDeadline;
pub use device::{Device, DeviceSet};
pub use discover::{DeviceInfo, DiscoveryTarget, discover};
pub use error::RadioError;
pub use front_end::{TuneRequest, TuneResult};
pub use identity::DeviceIdentity;
pub use ledger::{Cause, Imbalance, Ledger};
pub use num_complex::{Complex32, Complex64};
pub use remote::{RemoteDestination, RemoteRxStream};
pub use shared_port::SharedPort;
pub use stream::{
    RxArgs, RxCounters, RxError, RxEvent, RxMember, RxMetadata, RxStreamer, SAMPLES_STOPPED,
    StreamRate,
};
pub use tx::{
    TxArgs, TxCause, TxCounters, TxError, TxEvent, TxLedger, TxMember, TxMetadata, TxRepeated,
    TxSent, TxStreamer, TxUnknown,
};
