//! The packets of a stream, decoded.

use millstream_wire::chdr::{DataRepr, Packet, PacketType, SC16_LEN};
use millstream_wire::stream::CommandRepr;
use millstream_wire::{Error, Width};

/// A datagram, parsed.
pub(super) enum Content {
    Data { repr: DataRepr, at: usize, flow_bytes: usize },
    Command { repr: CommandRepr, flow_bytes: usize },
    Other,
}

/// The fields of a data packet that the tracker needs.
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

/// Samples missing before a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PacketGap {
    /// Packets missing by sequence number.
    pub packets: u64,
    /// Samples that the missing packets held.
    pub in_packets: u64,
    /// The samples of those that came damaged, at most: the last one of a run may be short.
    pub damaged: u64,
    /// Further missing samples: the device never sent these.
    pub unsent: u64,
    /// The jump of the device's clock, ticks, if it cannot be counted in samples: backward, or very
    /// far forward. 0 without a jump.
    pub jump: i64,
}

impl PacketGap {
    /// Returns the missing samples in all.
    pub fn samples(&self) -> u64 {
        self.in_packets.saturating_add(self.unsent)
    }
}

/// The class of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PacketClass {
    /// The next packet.
    Next,
    /// A later packet.
    After(PacketGap),
    /// A packet that came before, or is too old to classify.
    Duplicate,
    /// A packet that was given up; `damaged`: an earlier copy came damaged.
    Late { damaged: bool },
    /// A packet with an implausible time, unless the packet behind it confirms it.
    Nonsense,
}

/// The packet to which the damage belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Damage {
    /// Recorded for the gap that the packet will leave.
    Noted,
    /// The packet was counted as missing.
    OfMissing,
    /// The packet has arrived: this was a copy of it.
    OfCopy,
    /// Its number is far from the next one.
    Unknown,
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
