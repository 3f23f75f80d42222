//! The packets of a stream: decoded, and as they wait for the caller.

use std::net::SocketAddrV4;

use millstream_wire::chdr::{DataRepr, Packet, PacketType, SC16_LEN};
use millstream_wire::stream::CommandRepr;
use millstream_wire::{Error, Width};

use super::meta::RxEvent;

/// A datagram, parsed.
pub(super) enum Content {
    Data { repr: DataRepr, at: usize, flow_bytes: usize },
    Command { repr: CommandRepr, flow_bytes: usize },
    Other,
}

/// The fields of a data packet that its place in the stream follows from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arrival {
    pub seq: u16,
    pub ticks: Option<u64>,
    pub samples: u64,
}

impl Arrival {
    /// Returns the fields of a packet.
    pub fn of(repr: &DataRepr) -> Self {
        let samples = (repr.payload_len / SC16_LEN) as u64;
        Self { seq: repr.seq, ticks: repr.timestamp, samples }
    }

    /// Returns those of the packet in `bytes`, if it is a data packet.
    pub fn in_packet(bytes: &[u8], width: Width) -> Option<Self> {
        let repr = DataRepr::parse(&Packet::parse(bytes, width).ok()?).ok()?;
        Some(Self::of(&repr))
    }
}

/// Decodes a packet of this stream.
pub(super) fn content(packet: &Packet<'_>) -> Result<Content, Error> {
    let flow_bytes = packet.flow_len();
    match packet.kind() {
        PacketType::Data | PacketType::TimedData => {
            let repr = DataRepr::parse(packet)?;
            if repr.payload_len % SC16_LEN != 0 {
                return Err(Error::PayloadTooShort);
            }
            let at = packet.header().payload_offset(packet.width());
            Ok(Content::Data { repr, at, flow_bytes })
        }
        PacketType::StreamCommand => {
            Ok(Content::Command { repr: CommandRepr::parse(packet)?, flow_bytes })
        }
        PacketType::Management | PacketType::StreamStatus | PacketType::Control => {
            Ok(Content::Other)
        }
    }
}

/// A datagram that the port lends, with its index in the port's batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct LentDatagram<'a> {
    pub index: usize,
    pub payload: &'a [u8],
    pub source: SocketAddrV4,
}

/// The samples of a packet that the caller has not read yet. The packet stays where it is until all
/// are read: in the port's batch or in the reorder buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnreadSamples {
    /// The place of the packet.
    pub place: PacketSource,
    /// The offset of the next sample in it, and the end of the samples.
    pub at: usize,
    pub end: usize,
    /// Time of the next sample.
    pub ticks: Option<u64>,
    /// Its length in flow control, bytes.
    pub flow_bytes: usize,
    /// The burst is over with this packet.
    pub ends_burst: bool,
    /// The event to report behind it.
    pub then: RxEvent,
}

/// The place of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PacketSource {
    /// In the batch that the port lends, by its index.
    Lent(usize),
    /// In the reorder buffer, by its place.
    Aside(usize),
}

/// A report to the caller without samples, which waits for its turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct PendingReport {
    pub event: RxEvent,
    pub ticks: Option<u64>,
    pub ends_burst: bool,
    /// The next event to report.
    pub then: RxEvent,
}

/// What the radio and the port have reported besides packets, so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SideReports {
    /// Datagrams that the receive queue dropped.
    pub queue_drops: u64,
    /// Datagrams that were too long for the port.
    pub too_long: u64,
    pub late_commands: u64,
    pub overruns: u64,
    /// The end of the last run that overran, ticks.
    pub overrun_ticks: u64,
}
