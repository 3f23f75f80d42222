//! Receiving: readers with the contract about gaps.
//!
//! | file | what it does |
//! | --- | --- |
//! | `source` | one channel or several, as one source of samples |
//! | `run` | what a reader does with samples and gaps; it never waits for other threads |
//! | `reader` | the reader that threads share |

mod reader;
mod run;
mod source;

pub use reader::RxReader;
pub(crate) use source::RxSource;

/// How a reader is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RxOptions {
    /// What becomes of gaps.
    pub gaps: GapPolicy,
    /// Samples of a full packet; `None` for as many as the network carries.
    pub samples_per_packet: Option<u32>,
    /// The size of the receive queue of each channel, bytes; `None` for the radio's default.
    pub recv_queue_bytes: Option<usize>,
    /// The result of [`RxReader::samples_per_read`]; `None` for a hundredth of a second, at least
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

    /// Sets the samples that a reader recommends for a read.
    #[must_use]
    pub fn with_samples_per_read(mut self, samples: usize) -> Self {
        self.samples_per_read = Some(samples);
        self
    }
}

/// What becomes of the gaps of a stream. [`RxReader::take_status`] reports them in each case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GapPolicy {
    /// A read without samples says how many are missing.
    #[default]
    Event,
    /// Zeros stand for the missing samples, as many as are missing, so that counting samples keeps
    /// the time. A jump of the radio's clock of unknown length leaves none.
    Zeros,
    /// Reads go on behind the gap; only their times show it.
    Drop,
}

impl GapPolicy {
    /// Its names, in the order of the variants.
    pub const NAMES: [&'static str; 3] = ["event", "zeros", "drop"];

    /// Returns the policy of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Event, Self::Zeros, Self::Drop];
        let place = Self::NAMES.iter().position(|known| *known == name)?;
        Some(all[place])
    }
}

/// The result of one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RxRead {
    /// Samples written to each buffer, contiguous in time.
    pub samples: usize,
    /// The time of the first sample, nanoseconds by the radio's clock. Of an event: its time, see
    /// there.
    pub time_ns: i64,
    /// The same, in ticks of the radio's clock.
    pub time_ticks: u64,
    /// The stream has reached the end that was asked for: nothing follows.
    pub end_of_burst: bool,
    /// Behind these samples the stream is interrupted.
    pub abrupt_end: bool,
    /// Anything but [`RxReadEvent::None`] comes without samples.
    pub event: RxReadEvent,
}

/// What a read returns in place of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RxReadEvent {
    /// Samples.
    #[default]
    None,
    /// No samples in time, or the stream does not run, or was stopped.
    Timeout,
    /// Samples are missing; the time is that at which samples resume.
    Gap(StreamGap),
    /// The start came after its own time, so the radio did not start.
    LateStart,
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
    /// The time at which samples resume, nanoseconds.
    pub resume_ns: i64,
    /// The same in ticks of the radio's clock.
    pub resume_ticks: u64,
}
