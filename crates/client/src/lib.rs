//! A networked radio: open it, set it, receive and transmit.
//!
//! This is the interface for programs in Rust; those for Python and SoapySDR stand on it. A radio
//! is opened by keys of text, each function may be called from any thread, and no loss of samples
//! can be overlooked.
//!
//! Receive:
//!
//! ```
//! use std::time::Duration;
//! use millstream_client::{ClientError, Radio, RxOptions, StreamStart};
//! use num_complex::Complex32;
//!
//! // An emulated radio in this process; `addr=192.168.10.2` is a real one.
//! let radio = Radio::open(&"radio=emulated".parse()?)?;
//! let channel = radio.rx(0);
//! channel.set_rate(1e6)?;
//! channel.set_frequency(433.9e6, None)?;
//! channel.set_gain(40.0)?;
//! let stream = channel.stream(RxOptions::default())?;
//! stream.start(StreamStart::now())?;
//! let mut samples = vec![Complex32::default(); stream.samples_per_read()];
//! for _ in 0..10 {
//!     match stream.read(&mut [&mut samples], Duration::from_secs(1)) {
//!         Ok(got) => println!("{} samples at {:?}", got.samples, got.time),
//!         Err(ClientError::Gap(gap)) => println!("{gap}"),
//!         Err(error) => return Err(error.into()),
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Transmit:
//!
//! ```
//! use std::time::Duration;
//! use millstream_client::{Radio, StreamStart, TxOptions};
//!
//! let radio = Radio::open(&"radio=emulated".parse()?)?;
//! radio.tx(0).set_rate(1e6)?;
//! radio.tx(0).set_frequency(433.9e6, None)?;
//! let stream = radio.tx(0).stream(TxOptions::default())?;
//! stream.start(StreamStart::now())?;
//! let burst = vec![[1000_i16, 0]; 10_000];
//! // The last argument but one ends the burst; a time in place of `None` is that of its begin.
//! stream.write(&[&burst], None, true, Duration::from_secs(1))?;
//! println!("{:?}", stream.take_status(Duration::from_secs(1)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The contract of a receive stream:
//!
//! - Every read with samples has the time of its first sample.
//! - A read never crosses a gap. The read before a gap says `abrupt_end`, also a full one. The next
//!   one fails with [`ClientError::Gap`], which has the exact number of missing samples and the
//!   time at which samples resume. [`GapPolicy`] changes this, for programs that say so.
//! - To know that, a full read that ends with a packet waits for the next one, at most 0.1 s. A
//!   read that its time-out ends, and [`RxStream::read_some`], say only what is known by then.
//! - The stream goes on by itself behind a gap: read again.
//! - A read whose time is over returns what it has, also no sample.
//! - A read that waits returns when another thread stops or closes the stream.
//!
//! | module | function |
//! | --- | --- |
//! | `args`, `find`, `emulated` | keys of text; finding radios; the emulated radio of a process |
//! | `radio`, `channel` | the open radio; handles of its channels |
//! | `tuning`, `rates`, `clock`, `sensors` | settings and readings |
//! | `time` | times of a radio's clock |
//! | `rx`, `tx` | streams |
//! | `rtl_tcp` | a server for programs that speak the protocol of `rtl_tcp` |
//! | `turns` | a lock at which a waiting read lets commands pass |
//! | `status`, `parts` | queues of events; parts of slices |
//! | `handles` | numbers that stand for radios and streams in C |

mod args;
mod channel;
mod clock;
mod closing;
mod emulated;
mod error;
mod find;
mod handles;
mod parts;
mod radio;
mod rates;
mod rtl_tcp;
mod rx;
mod sensors;
mod status;
mod time;
mod tuning;
mod turns;
mod tx;

pub use args::ClientArgs;
pub use channel::{Channel, ReceiveChannel, TransmitChannel};
pub use error::ClientError;
pub use find::{FoundRadio, find};
pub use handles::HandleTable;
pub use millstream_radio::device::SensorReading;
pub use millstream_radio::graph::StreamDirection;
pub use millstream_radio::{Ledger, RadioError, StreamSample, TxLedger};
pub use parts::CHANNELS_MAX;
pub use radio::Radio;
pub use rtl_tcp::{RtlCounts, RtlOptions, RtlServer};
pub use rx::{GapPolicy, Received, RxOptions, RxStream, StreamGap};
pub use status::{StatusKind, StreamStatus};
pub use time::DeviceTime;
pub use tuning::TuneParts;
pub use turns::{LineTurn, TurnLine};
pub use tx::{TxOptions, TxStream, TxWrite};

/// When and for how long a stream runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamStart {
    /// The time of the first sample by the radio's clock; `None` for at once.
    pub time: Option<DeviceTime>,
    /// The number of samples; `None` for no end.
    pub samples: Option<u64>,
}

impl StreamStart {
    /// Begins at once, without an end.
    #[must_use]
    pub fn now() -> Self {
        Self::default()
    }

    /// Begins at a time of the radio's clock, without an end.
    #[must_use]
    pub fn at(time: DeviceTime) -> Self {
        Self { time: Some(time), samples: None }
    }

    /// Ends behind a number of samples.
    #[must_use]
    pub fn with_samples(self, samples: u64) -> Self {
        Self { samples: Some(samples), ..self }
    }
}
