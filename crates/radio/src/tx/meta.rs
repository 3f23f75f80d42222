//! The arguments, metadata and errors of a transmit stream.

use std::net::SocketAddrV4;

use crate::RadioError;
use crate::rpc::advice;

/// The factor that maps 1.0 to `sc16` full scale 32767.
pub const SC16_FULL_SCALE: f32 = 32767.0;

/// The arguments of a transmit stream.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct TxArgs {
    /// The device's transmit channel, from 0.
    pub channel: usize,
    /// Samples of a full packet; `None` for as many as the path carries.
    pub samples_per_packet: Option<u32>,
    /// The factor from a `Complex32` to the wire.
    pub scale: f32,
    /// Wanted size of the send queue, bytes.
    pub send_queue_bytes: usize,
}

impl TxArgs {
    /// Returns the usual settings for a channel.
    pub fn new(channel: usize) -> Self {
        Self {
            channel,
            samples_per_packet: None,
            scale: SC16_FULL_SCALE,
            send_queue_bytes: 4 << 20,
        }
    }

    /// Sets the samples of a full packet. With fewer samples a packet fills sooner.
    pub fn with_samples_per_packet(mut self, samples: u32) -> Self {
        self.samples_per_packet = Some(samples);
        self
    }

    /// Sets the factor of the conversion from `Complex32`.
    pub fn with_scale(mut self, scale: f32) -> Self {
        self.scale = scale;
        self
    }

    /// Sets the wanted size of the send queue, bytes.
    pub fn with_send_queue_bytes(mut self, bytes: usize) -> Self {
        self.send_queue_bytes = bytes;
        self
    }
}

/// The metadata of the samples of one `send`.
///
/// A burst starts with the first samples after the stream was opened or the last burst ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TxMetadata {
    /// Time of the first sample, ticks. `None` at the start of a burst: at once; in a burst:
    /// directly behind the sample before. Any other time in a burst is sent, but a device may use
    /// only the times at the start of a burst: end the burst before a gap.
    pub time_ticks: Option<u64>,
    /// The burst ends with the last of these samples. Without samples it ends with those sent
    /// before, or, when these have left already, with one zero sample.
    pub end_of_burst: bool,
}

impl TxMetadata {
    /// Metadata in a burst, or at the start of one that is transmitted at once.
    pub fn now() -> Self {
        Self::default()
    }

    /// Metadata of a burst whose first sample leaves the antenna at the device's time `ticks`.
    pub fn at(ticks: u64) -> Self {
        Self { time_ticks: Some(ticks), end_of_burst: false }
    }

    /// Ends the burst with the last of these samples.
    pub fn ending(mut self) -> Self {
        self.end_of_burst = true;
        self
    }
}

/// The result of one `send`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TxSent {
    /// Samples taken from the caller's slice, from its beginning. Fewer than the slice has at the
    /// time-out; send the rest again with the same metadata, except for its time.
    pub samples: usize,
    /// The burst has ended; false at the time-out.
    pub end_of_burst: bool,
}

/// An event that the device reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TxEvent {
    /// No samples were present when they were needed inside a burst.
    Underflow {
        /// The device's time, ticks.
        time_ticks: u64,
    },
    /// Samples came after their time and were dropped.
    Late {
        /// The device's time, ticks.
        time_ticks: u64,
    },
    /// The last sample of a burst has been transmitted.
    BurstAck {
        /// The device's time, ticks.
        time_ticks: u64,
    },
    /// A packet with a wrong number came to the device: others are missing, or it came twice or
    /// late.
    SequenceError,
    /// Samples that are not among those that the device took. Some may come late.
    Lost {
        /// The number of packets.
        packets: u64,
        /// Samples in them.
        samples: u64,
    },
    /// The device had stopped answering for the stream, and the stream was set up again.
    Reestablished {
        /// Samples that may have been transmitted or lost.
        samples: u64,
    },
}

/// The counters of a transmit stream's port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TxCounters {
    /// Data packets sent.
    pub packets: u64,
    /// Trains sent.
    pub trains: u64,
    /// Zero samples sent to end a burst or to fill a cycle of the radio; not in a ledger.
    pub padding: u64,
    /// Bursts ended.
    pub bursts: u64,
    /// Credit reports taken.
    pub reports: u64,
    /// Credit reports that came before, or so late that they had been given up; ignored.
    pub stale_reports: u64,
    /// Datagrams from senders other than the device; ignored.
    pub foreign: u64,
    /// Datagrams from the device that could not be decoded; ignored.
    pub malformed: u64,
    /// Well-formed packets of unexpected kinds; ignored.
    pub unexpected: u64,
    /// Gaps in the sequence that the device reported.
    pub sequence_errors: u64,
    /// Queries of the device's place.
    pub queries: u64,
    /// The number of times that the window stayed closed until credit was requested.
    pub stalls: u64,
    /// The number of times that the stream was set up again.
    pub reestablished: u64,
    /// Underflows reported.
    pub underflows: u64,
    /// Late packets reported.
    pub lates: u64,
    /// Bursts acknowledged.
    pub burst_acks: u64,
    /// Events that were dropped because the caller did not fetch them in time.
    pub events_dropped: u64,
    /// Reports of the device that were not fetched in time, or that never came by the device's own
    /// numbers. Each may have been about another channel of the same block, or about a late packet
    /// of this stream: in the ledger that many packets may be late.
    pub reports_missed: u64,
}

impl TxCounters {
    /// Adds the counters of another stream.
    pub fn merge(&mut self, counters: &Self) {
        // A field more is an error here.
        let Self {
            packets,
            trains,
            padding,
            bursts,
            reports,
            stale_reports,
            foreign,
            malformed,
            unexpected,
            sequence_errors,
            queries,
            stalls,
            reestablished,
            underflows,
            lates,
            burst_acks,
            events_dropped,
            reports_missed,
        } = *counters;
        self.packets += packets;
        self.trains += trains;
        self.padding += padding;
        self.bursts += bursts;
        self.reports += reports;
        self.stale_reports += stale_reports;
        self.foreign += foreign;
        self.malformed += malformed;
        self.unexpected += unexpected;
        self.sequence_errors += sequence_errors;
        self.queries += queries;
        self.stalls += stalls;
        self.reestablished += reestablished;
        self.underflows += underflows;
        self.lates += lates;
        self.burst_acks += burst_acks;
        self.events_dropped += events_dropped;
        self.reports_missed += reports_missed;
    }
}

/// Why a stream cannot continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TxError {
    /// Neither credit nor control packets come from the device.
    #[error(
        "the device at {address} stopped answering: it sent no credit for {silent_ms} ms and did \
         not answer a register read; {}", advice(claim_lost.as_deref())
    )]
    DeviceSilent {
        /// The device's CHDR address.
        address: SocketAddrV4,
        /// The time without a packet, milliseconds.
        silent_ms: u64,
        /// Why the claim on it was lost, if it was.
        claim_lost: Option<String>,
    },
    /// Streams or slices that cannot be sent together.
    #[error("these streams cannot transmit together: {reason}")]
    BadGroup {
        /// The fault.
        reason: &'static str,
    },
    /// An error of the radio.
    #[error(transparent)]
    Radio(#[from] RadioError),
}
