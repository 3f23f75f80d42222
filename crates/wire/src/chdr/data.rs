//! Data packets: samples, with or without time.

use super::{Header, Packet, PacketType, Width};
use super::{header_len, put_header};
use crate::bits::WordWriter;
use crate::{Epid, Error, Result};

/// Everything of a data packet but the samples (facts section 5).
///
/// `emit` writes header and timestamp; the sender puts the samples directly behind them, or sends
/// them from where they lie. Packets with metadata are written with [`Header::emit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DataRepr {
    /// The receiving endpoint.
    pub dst_epid: Epid,
    /// Sequence number: 0 when the stream is initialised, +1 per packet, wraps at 2¹⁶.
    pub seq: u16,
    /// Time of the first sample in ticks.
    pub timestamp: Option<u64>,
    /// The packet ends a burst.
    pub eob: bool,
    /// The packet ends a vector.
    pub eov: bool,
    /// Bytes of samples.
    pub payload_len: usize,
}

impl DataRepr {
    /// Reads the fields of a data packet. `payload_len` leaves metadata out.
    ///
    /// # Errors
    /// [`Error::WrongPacketType`].
    #[inline]
    pub fn parse(packet: &Packet<'_>) -> Result<DataRepr> {
        let header = packet.header();
        if !header.kind.is_data() {
            return Err(Error::WrongPacketType);
        }
        Ok(DataRepr {
            dst_epid: header.dst_epid,
            seq: header.seq,
            timestamp: packet.timestamp(),
            eob: header.eob,
            eov: header.eov,
            payload_len: packet.payload().len(),
        })
    }

    fn kind(&self) -> PacketType {
        if self.timestamp.is_some() { PacketType::TimedData } else { PacketType::Data }
    }

    /// Bytes of header and timestamp: where the samples begin.
    #[must_use]
    #[inline]
    pub fn header_len(&self, width: Width) -> usize {
        header_len(self.kind(), width)
    }

    /// Bytes of the whole packet: what to send.
    #[must_use]
    #[inline]
    pub fn packet_len(&self, width: Width) -> usize {
        self.header_len(width) + self.payload_len
    }

    /// Writes header and timestamp to the start of `buf` and returns [`DataRepr::header_len`].
    /// `buf` needs no room for the samples.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`], [`Error::PacketTooLong`].
    #[inline]
    pub fn emit(&self, width: Width, buf: &mut [u8]) -> Result<usize> {
        let length = u16::try_from(self.packet_len(width)).map_err(|_| Error::PacketTooLong)?;
        let header = Header {
            vc: 0,
            eob: self.eob,
            eov: self.eov,
            kind: self.kind(),
            num_mdata: 0,
            seq: self.seq,
            length,
            dst_epid: self.dst_epid,
        };
        let mut out = WordWriter::new(buf);
        put_header(&header, self.timestamp.unwrap_or(0), width, &mut out)?;
        Ok(out.len())
    }
}

impl core::fmt::Display for DataRepr {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} to {} seq {}", self.kind(), self.dst_epid, self.seq)?;
        if let Some(ticks) = self.timestamp {
            write!(f, " time {ticks}")?;
        }
        write!(f, " payload {}", self.payload_len)?;
        if self.eob { f.write_str(" eob") } else { Ok(()) }
    }
}
