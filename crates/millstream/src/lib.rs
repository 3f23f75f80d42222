//! Radio samples from the network to a decoded result.
//!
//! This crate shows the other crates of Millstream under one name. Most programs need one line,
//! `use millstream::prelude::*;`, and no radio to begin with: an emulated one runs in the same
//! process.
//!
//! ```
//! # #[cfg(feature = "client")] {
//! use millstream::prelude::*;
//! use std::time::Duration;
//!
//! // `addr=192.168.10.2` in place of `radio=emulated` opens a radio of the network.
//! let radio = Radio::open(&"radio=emulated,antenna=tone:100e3;0.5".parse()?)?;
//! radio.rx(0).set_rate(1e6)?;
//! let stream = radio.rx(0).stream(RxOptions::default())?;
//! stream.start(StreamStart::now())?;
//! let mut samples = vec![Complex32::default(); 1000];
//! // Missing samples would be an error.
//! let got = stream.read(&mut [&mut samples], Duration::from_secs(5))?;
//! assert!(got.samples > 0);
//! // A tone has the same magnitude at all times.
//! assert!(samples[..got.samples].iter().all(|sample| (sample.norm() - 0.5).abs() < 1e-3));
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | feature | module | contents |
//! | --- | --- | --- |
//! | `radio` | `radio` | below `client`: the protocol, and its blocks for flowgraphs |
//! | `emulator` | `emulator` | the emulated radio |
//! | `client` | `client` | networked radios: open, set, receive, transmit |
//! | `flow` | `flow` | blocks, graphs, plans, graph files |
//! | `blocks` | `blocks` | the block library |
//! | `atsc` | `atsc` | transmitter and receiver of digital television (ATSC 8-VSB) |
//! | `record` | `record` | recordings with SigMF metadata, read and written |
//! | `links` | `link`, `net` | links for datagrams and frames, the IPv4 stack |
//! | `dpdk` | | the link `dpdk`, over the machine's libdpdk; not a default |
//! | `stats` | `stats` | histograms, medians, intervals, tests, random numbers; not a default |
//!
//! A program that needs less switches the default features off and names those that it needs:
//! `millstream = { version = "0.1", default-features = false, features = ["radio"] }`.

#[cfg(feature = "atsc")]
pub use millstream_atsc as atsc;
#[cfg(feature = "blocks")]
pub use millstream_blocks as blocks;
#[cfg(feature = "client")]
pub use millstream_client as client;
#[cfg(feature = "emulator")]
pub use millstream_emulator as emulator;
#[cfg(feature = "links")]
pub use millstream_link as link;
#[cfg(feature = "links")]
pub use millstream_net as net;
#[cfg(feature = "radio")]
pub use millstream_radio as radio;
#[cfg(feature = "stats")]
pub use millstream_stats as stats;

#[cfg(all(feature = "radio", feature = "emulator"))]
mod emulated;
#[cfg(feature = "flow")]
pub mod flow;
pub mod prelude;
#[cfg(feature = "record")]
pub mod record;

#[cfg(all(feature = "radio", feature = "emulator"))]
pub use emulated::emulated_radio;
#[cfg(feature = "flow")]
pub use flow::registry;
