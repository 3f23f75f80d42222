//! A radio as clients in other languages use it: SoapySDR, Python.
//!
//! Everything is opened by keys of text, every function may be called from any thread, and a
//! stream has a contract about time and gaps that survives clients that ask carelessly.
//!
//! ```no_run
//! use std::time::Duration;
//! use millstream_client::{
//!     ClientArgs, ClientRadio, RxOptions, RxReadEvent, StreamDirection, StreamStart,
//! };
//! use num_complex::Complex32;
//!
//! // An emulated radio in this process; `addr=192.168.10.2` is a real one.
//! let radio = ClientRadio::open(&"radio=emulated".parse::<ClientArgs>()?)?;
//! radio.set_rate(StreamDirection::Rx, 0, 1e6)?;
//! radio.set_frequency(StreamDirection::Rx, 0, 433.9e6, None)?;
//! radio.set_gain(StreamDirection::Rx, 0, 40.0)?;
//! let reader = radio.reader(&[0], RxOptions::default())?;
//! reader.start(StreamStart::default())?;
//! let mut samples = vec![Complex32::default(); reader.samples_per_read()];
//! let read = reader.read(&mut [&mut samples], Duration::from_secs(1))?;
//! match read.event {
//!     RxReadEvent::None => println!("{} samples at {} ns", read.samples, read.time_ns),
//!     RxReadEvent::Gap(gap) => println!("{} samples are missing", gap.samples),
//!     other => println!("{other:?}"),
//! }
//! reader.stop()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The contract of a reader:
//!
//! - Every read with samples has the time of its first sample.
//! - A read never crosses a gap. The read before a gap says `abrupt_end`, also a full one. Then
//!   comes one [`RxReadEvent::Gap`], with the exact number of missing samples and the time at which
//!   samples resume. [`GapPolicy`] changes this.
//! - To know that, a full read that ends with a packet waits for the next one, at most 0.1 s. A
//!   read that its time-out ends, and [`RxReader::read_some`], say only what is known by then.
//! - The stream goes on by itself behind a gap.
//! - A read that waits returns when another thread stops or closes the stream.
//!
//! | module | function |
//! | --- | --- |
//! | `args`, `find`, `emulated` | keys of text; finding radios; the emulated radio of a process |
//! | `radio` | the open radio |
//! | `tuning`, `rates`, `clock`, `sensors` | its settings and readings |
//! | `rx`, `tx` | readers and writers of streams |
//! | `rtl_tcp` | a server for programs that speak the protocol of `rtl_tcp` |
//! | `turns` | a lock at which a waiting read lets commands pass |
//! | `time`, `status`, `parts` | times in nanoseconds; queues of events; parts of slices |

mod args;
mod clock;
mod closing;
mod emulated;
mod error;
mod find;
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
pub use clock::TimeMoment;
pub use error::ClientError;
pub use find::{FoundRadio, find};
pub use millstream_radio::StreamSample;
pub use millstream_radio::device::SensorReading;
pub use millstream_radio::graph::StreamDirection;
pub use parts::CHANNELS_MAX;
pub use radio::ClientRadio;
pub use rtl_tcp::{RtlCounts, RtlOptions, RtlServer};
pub use rx::{GapPolicy, RxOptions, RxRead, RxReadEvent, RxReader, StreamGap};
pub use status::{StatusKind, StreamStatus};
pub use time::{ns_of_ticks, ticks_of_ns};
pub use tuning::{GAIN_NAME, TuneParts};
pub use turns::{LineTurn, TurnLine};
pub use tx::{TxOptions, TxWrite, TxWriter};

/// When and for how long a stream runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamStart {
    /// The time of the first sample by the radio's clock, nanoseconds; `None` for at once.
    pub time_ns: Option<i64>,
    /// The number of samples; `None` for no end.
    pub samples: Option<u64>,
}
