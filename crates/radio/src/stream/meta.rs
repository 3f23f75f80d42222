//! The arguments, metadata and errors of a receive stream.

use std::net::SocketAddrV4;
use std::time::Duration;

use crate::RadioError;
use crate::convert::SC16_SCALE;
use crate::rpc::advice;

/// The arguments of a receive stream.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct RxArgs {
    /// The device's receive channel, from 0.
    pub channel: usize,
    /// Samples of a full packet; `None` for as many as the path carries.
    pub samples_per_packet: Option<u32>,
    /// The factor from a wire sample to `Complex32`.
    pub scale: f32,
    /// Wanted size of the receive queue, bytes; `None` for the device's default. The credit window
    /// follows from the actual size.
    pub recv_queue_bytes: Option<usize>,
    /// How long later packets wait for one that the network delays; `None` for 10 ms and at most 32
    /// packets. At least 4 and at most 2048 packets wait, and with no time none does.
    pub reorder_window: Option<Duration>,
}

impl RxArgs {
    /// Returns the usual settings for a channel.
    pub fn new(channel: usize) -> Self {
        Self {
            channel,
            samples_per_packet: None,
            scale: SC16_SCALE,
            recv_queue_bytes: None,
            reorder_window: None,
        }
    }

    /// Sets the samples of a full packet.
    pub fn with_samples_per_packet(mut self, samples: u32) -> Self {
        self.samples_per_packet = Some(samples);
        self
    }

    /// Sets the wanted size of the receive queue, bytes.
    pub fn with_recv_queue_bytes(mut self, bytes: usize) -> Self {
        self.recv_queue_bytes = Some(bytes);
        self
    }

    /// Sets how long later packets wait for one that the network delays.
    pub fn with_reorder_window(mut self, window: Duration) -> Self {
        self.reorder_window = Some(window);
        self
    }

    /// Sets the factor of the conversion to `Complex32`.
    pub fn with_scale(mut self, scale: f32) -> Self {
        self.scale = scale;
        self
    }
}

/// The result of one `recv`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RxMetadata {
    /// Samples written to each of the caller's slices. They are contiguous in time.
    pub samples: usize,
    /// Time of the first sample, ticks; after a gap, without samples, the time at which the stream
    /// continues. `None` when the device sends no time.
    pub time_ticks: Option<u64>,
    /// The last sample of a burst is among these, or the burst ended before, on all channels.
    pub end_of_burst: bool,
    /// The event. Anything but [`RxEvent::None`] comes without samples. A gap of several channels
    /// counts the samples missing on *every* one, exactly, and the packets that were lost on any.
    pub event: RxEvent,
    /// The position of the channel with the first event.
    pub channel: usize,
}

/// An event of a stream other than samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RxEvent {
    /// No event.
    #[default]
    None,
    /// The device could not send in time. A continuous stream has been restarted.
    Overrun {
        /// Samples missing, exact.
        samples: u64,
    },
    /// The device's time stamps jumped, while its packets were consecutive.
    ClockJump {
        /// The size of the jump: below 0, the clock was set back.
        ticks: i64,
        /// Samples missing by that time. 0 when the clock was set back, or too far ahead to count.
        samples: u64,
    },
    /// Packets are missing.
    SequenceGap {
        /// The number of packets.
        packets: u64,
        /// Samples missing, exact.
        samples: u64,
    },
    /// The command came after its own start time; the device discarded it.
    LateCommand,
    /// No data came within the time-out.
    Timeout,
}

impl RxEvent {
    /// Returns it with `samples` fewer missing: they lie behind the end.
    pub(crate) fn cut(mut self, samples: u64) -> Self {
        if let Self::Overrun { samples: missing }
        | Self::ClockJump { samples: missing, .. }
        | Self::SequenceGap { samples: missing, .. } = &mut self
        {
            *missing = missing.saturating_sub(samples);
        }
        self
    }

    /// Returns the samples missing by this event.
    pub fn missing(&self) -> u64 {
        match *self {
            Self::Overrun { samples }
            | Self::ClockJump { samples, .. }
            | Self::SequenceGap { samples, .. } => samples,
            Self::None | Self::LateCommand | Self::Timeout => 0,
        }
    }
}

/// The counters of a receive stream's port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RxCounters {
    /// Data packets taken.
    pub packets: u64,
    /// Datagrams from senders other than the device; ignored.
    pub foreign: u64,
    /// Datagrams from the device that could not be decoded; ignored.
    pub malformed: u64,
    /// Datagrams that were longer than the port takes. Samples that are missing there count as
    /// [`crate::Cause::Malformed`].
    pub too_long: u64,
    /// Packets to another endpoint; ignored.
    pub misaddressed: u64,
    /// Second copies of packets, and packets too old to classify; ignored.
    pub duplicates: u64,
    /// Packets that came early and waited in the reorder buffer.
    pub reordered: u64,
    /// Packets that came after they had been given up, or while the stream was set up again: their
    /// samples stay lost.
    pub late: u64,
    /// Gaps whose length is not known exactly: the device sends no time, or its clock was set where
    /// the stream was set up again or restarted behind an overrun.
    pub unmeasured_gaps: u64,
    /// Jumps of the device's clock, forward or back.
    pub clock_jumps: u64,
    /// Data packets while nothing was started; ignored.
    pub stray: u64,
    /// Other well-formed packets of unexpected kinds; ignored.
    pub unexpected: u64,
    /// Credit reports sent.
    pub reports: u64,
    /// Credit reports for which the link had no space; a later report included them.
    pub reports_put_off: u64,
    /// Overruns after which the stream was restarted.
    pub overruns: u64,
    /// Stalls (all credit lost in the network) after which the stream was restarted.
    pub stalls: u64,
}

impl RxCounters {
    /// Adds the counters of another stream.
    pub fn merge(&mut self, counters: &Self) {
        // A field more is an error here.
        let Self {
            packets,
            foreign,
            malformed,
            too_long,
            misaddressed,
            duplicates,
            reordered,
            late,
            unmeasured_gaps,
            clock_jumps,
            stray,
            unexpected,
            reports,
            reports_put_off,
            overruns,
            stalls,
        } = *counters;
        self.packets += packets;
        self.foreign += foreign;
        self.malformed += malformed;
        self.too_long += too_long;
        self.misaddressed += misaddressed;
        self.duplicates += duplicates;
        self.reordered += reordered;
        self.late += late;
        self.unmeasured_gaps += unmeasured_gaps;
        self.clock_jumps += clock_jumps;
        self.stray += stray;
        self.unexpected += unexpected;
        self.reports += reports;
        self.reports_put_off += reports_put_off;
        self.overruns += overruns;
        self.stalls += stalls;
    }
}

/// Why a stream cannot continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RxError {
    /// Neither samples nor control packets come from the device.
    #[error(
        "the device at {address} stopped answering: it sent no sample for {silent_ms} ms and did \
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
    /// The device answers, but none of its samples comes: for [`crate::SAMPLES_STOPPED`], or
    /// longer where packets are long.
    #[error(
        "no sample came from the device at {address} for {silent_ms} ms, although it answers \
         register reads: {samples} samples are counted as lost; check that packets of this size \
         pass (MTU of every part of the network), that no firewall drops them, and that the \
         device's clock runs, then start again"
    )]
    SamplesStopped {
        /// The device's CHDR address.
        address: SocketAddrV4,
        /// The time without a sample, milliseconds.
        silent_ms: u64,
        /// The samples of that time by this machine's clock, or the rest of the burst; the ledger
        /// has them as [`crate::Cause::Unknown`].
        samples: u64,
    },
    /// A running stream was started.
    #[error("the stream is running: stop it, and receive to the end of the burst first")]
    Running,
    /// A finite capture of an impossible length.
    #[error(
        "a burst of {samples} samples cannot be requested: give a multiple of {multiple} between \
         {multiple} and {most}"
    )]
    BadLength {
        /// The requested length.
        samples: u64,
        /// The unit of lengths.
        multiple: u32,
        /// The longest.
        most: u64,
    },
    /// The radio's queue of captures is full.
    #[error("the radio has no free command slot: receive until one of the requested bursts begins")]
    QueueFull,
    /// A capture was queued behind one without an end.
    #[error("a burst cannot follow a continuous stream, which has no end: stop the stream first")]
    Endless,
    /// After an overrun, every restart came too late.
    #[error(
        "the stream could not start again after an overrun: {attempts} start commands came too \
         late; use a lower sample rate, or reduce the load of this machine"
    )]
    NotRestarted {
        /// The number of attempts.
        attempts: u32,
    },
    /// Streams that cannot be received together.
    #[error("these streams cannot form a group: {reason}")]
    BadGroup {
        /// The reason.
        reason: &'static str,
    },
    /// Channels are aligned by time, and this device sends none.
    #[error(
        "the packets of the device at {address} contain no time, so its channels cannot be \
         aligned: receive each channel alone"
    )]
    NoTime {
        /// The device's CHDR address.
        address: SocketAddrV4,
    },
    /// An error of the radio.
    #[error(transparent)]
    Radio(#[from] RadioError),
}

impl RxError {
    /// Returns the gap that came with the error.
    pub(crate) fn lost(&self) -> RxEvent {
        match *self {
            Self::SamplesStopped { samples, .. } => RxEvent::SequenceGap { packets: 0, samples },
            _ => RxEvent::None,
        }
    }
}
