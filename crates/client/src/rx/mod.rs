//! Receiving: streams with the contract about gaps.
//!
//! | file | what it does |
//! | --- | --- |
//! | `run` | what a stream does with samples and gaps; it never waits for other threads |
//! | `stream` | the stream that threads share |

mod run;
mod stream;

use std::fmt;

pub use stream::RxStream;

#[cfg(doc)]
use crate::ClientError;
use crate::time::DeviceTime;

/// How a receive stream is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RxOptions {
    /// What becomes of gaps.
    pub gaps: GapPolicy,
    /// Samples of a full packet; `None` for as many as the network carries.
    pub samples_per_packet: Option<u32>,
    /// The size of the receive queue of each channel, bytes; `None` for the radio's default.
    pub recv_queue_bytes: Option<usize>,
    /// The result of [`RxStream::samples_per_read`]; `None` for a hundredth of a second, at least
    /// a packet and no more than 65536.
    pub samples_per_read: Option<usize>,
}

impl RxOptions {
    /// Sets what becomes of gaps.
    #[must_use]
    pub fn with_gaps(mut self, gaps: GapPolicy) -> Self {
        self.gaps = gaps;
        self
    }

    /// Sets the samples of a full packet.
    #[must_use]
    pub fn with_samples_per_packet(mut self, samples: u32) -> Self {
        self.samples_per_packet = Some(samples);
        self
    }

    /// Sets the size of the receive queue of each channel, bytes.
    #[must_use]
    pub fn with_recv_queue_bytes(mut self, bytes: usize) -> Self {
        self.recv_queue_bytes = Some(bytes);
        self
    }

    /// Sets the samples that a stream recommends for a read.
    #[must_use]
    pub fn with_samples_per_read(mut self, samples: usize) -> Self {
        self.samples_per_read = Some(samples);
        self
    }
}

/// What becomes of the gaps of a stream. [`RxStream::take_status`] reports them in each case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GapPolicy {
    /// The read behind which samples are missing is followed by one that fails with
    /// [`ClientError::Gap`]; the next read goes on behind the gap.
    #[default]
    Error,
    /// A read without samples says in [`Received::gap`] how many are missing.
    Report,
    /// Zeros stand for the missing samples, as many as are missing, so that counting samples keeps
    /// the time. A jump of the radio's clock of unknown length leaves none.
    Zeros,
    /// Reads go on behind the gap; only their times show it.
    Drop,
}

impl GapPolicy {
    /// The names of the policies that programs in other languages choose: the one that reports
    /// gaps as events, and those of the last two variants.
    pub const NAMES: [&'static str; 3] = ["event", "zeros", "drop"];

    /// Returns the policy of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Report, Self::Zeros, Self::Drop];
        let place = Self::NAMES.iter().position(|known| *known == name)?;
        Some(all[place])
    }
}

/// The result of one read. Without samples, without a gap and without an end, its time was over, or
/// the stream does not run, or was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Received {
    /// Samples written to each buffer, contiguous in time.
    pub samples: usize,
    /// The time of the first sample; `None` without samples.
    pub time: Option<DeviceTime>,
    /// Missing samples, by [`GapPolicy::Report`]: then the read has none itself, and the next one
    /// begins behind the gap.
    pub gap: Option<StreamGap>,
    /// The stream has reached the end that was asked for: nothing follows.
    pub end_of_burst: bool,
    /// Behind these samples the stream is interrupted.
    pub abrupt_end: bool,
}

/// Missing samples of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamGap {
    /// Missing samples of each channel, exact; 0 if the radio's clock jumped by an unknown time.
    pub samples: u64,
    /// The cause: `overrun` (the radio's buffer was full), `sequence` (lost packets) or
    /// `clock_jump`.
    pub cause: &'static str,
    /// The time at which samples resume.
    pub resume: DeviceTime,
}

impl fmt::Display for StreamGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { samples, cause, resume } = self;
        write!(f, "{samples} samples are missing ({cause}); samples resume at {resume}")
    }
}
