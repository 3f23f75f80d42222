//! Transmitting: streams and their events.
//!
//! | file | what it does |
//! | --- | --- |
//! | `run` | bursts and times of a stream; it never waits for other threads |
//! | `stream` | the stream that threads share |

mod run;
mod stream;

pub use stream::TxStream;

/// How a transmit stream is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TxOptions {
    /// Samples of a full packet; `None` for as many as the network carries.
    pub samples_per_packet: Option<u32>,
    /// The result of [`TxStream::samples_per_write`]; `None` for a hundredth of a second, at least
    /// a packet and no more than 65536.
    pub samples_per_write: Option<usize>,
}

impl TxOptions {
    /// Sets the samples of a full packet.
    #[must_use]
    pub fn with_samples_per_packet(mut self, samples: u32) -> Self {
        self.samples_per_packet = Some(samples);
        self
    }

    /// Sets the samples that a stream recommends for a write.
    #[must_use]
    pub fn with_samples_per_write(mut self, samples: usize) -> Self {
        self.samples_per_write = Some(samples);
        self
    }
}

/// The result of one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TxWrite {
    /// Samples taken from each buffer, from its beginning. Fewer than it has at the time-out, and
    /// 0 while the stream does not run.
    pub samples: usize,
    /// The burst has ended.
    pub end_of_burst: bool,
}
