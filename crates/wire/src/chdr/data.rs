//! Data packets: samples, with or without time.

use super::{Header, Packet, PacketType, Width};
use super::{header_len, put_header};
use crate::bits::WordWriter;
use crate::{Epid, Error, Result};

/// All fields of a data packet except the samples.
///
/// `emit` writes header and timestamp; the sender puts the samples directly behind them, or sends
/// them from another buffer. Packets with metadata are written with [`Header::emit`].
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
    /// Reads the fields of a data packet. `payload_len` excludes metadata.
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

    /// Returns the bytes of header and timestamp: the offset of the samples.
    #[must_use]
    #[inline]
    pub fn header_len(&self, width: Width) -> usize {
        header_len(self.kind(), width)
    }

    /// Returns the bytes of the whole packet, to be sent.
    #[must_use]
    #[inline]
    pub fn packet_len(&self, width: Width) -> usize {
        self.header_len(width) + self.payload_len
    }

    /// Writes header and timestamp to the start of `buf` and returns [`DataRepr::header_len`].
    /// `buf` needs no space for the samples.
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

#[cfg(test)]
mod tests {
    use super::*;

    const REPR: DataRepr = DataRepr {
        dst_epid: Epid(2),
        seq: 3,
        timestamp: Some(0x55),
        eob: true,
        eov: false,
        payload_len: 4,
    };

    #[test]
    fn headers_are_written_and_nothing_else() {
        let mut buf = [0xAA; 20];
        assert_eq!(REPR.emit(Width::W64, &mut buf), Ok(16));
        let expected = [2, 0, 20, 0, 3, 0, 0xE0, 2, 0x55, 0, 0, 0, 0, 0, 0, 0, 0xAA, 0xAA];
        assert_eq!(buf[..18], expected);
        let untimed = DataRepr { timestamp: None, eob: false, ..REPR };
        assert_eq!(untimed.emit(Width::W64, &mut buf), Ok(8));
        assert_eq!(buf[..9], [2, 0, 12, 0, 3, 0, 0xC0, 0, 0x55]);
    }

    #[test]
    fn unused_lanes_of_the_header_word_are_zero() {
        for width in [Width::W128, Width::W256, Width::W512] {
            let mut buf = [0xAA; 65];
            assert_eq!(REPR.emit(width, &mut buf), Ok(width.bytes()));
            assert_eq!(buf[8], 0x55);
            assert!(buf[9..width.bytes()].iter().all(|&b| b == 0));
            assert_eq!(buf[width.bytes()], 0xAA);
        }
    }

    #[test]
    fn the_longest_packet_is_what_length_can_state() {
        let mut buf = [0; 64];
        let longest = DataRepr { payload_len: 65535 - 16, ..REPR };
        assert_eq!(longest.packet_len(Width::W64), crate::chdr::MAX_LEN);
        assert!(longest.emit(Width::W64, &mut buf).is_ok());
        let longer = DataRepr { payload_len: 65536 - 16, ..REPR };
        assert_eq!(longer.emit(Width::W64, &mut buf), Err(Error::PacketTooLong));
        assert_eq!(REPR.emit(Width::W64, &mut buf[..15]), Err(Error::BufferTooSmall));
    }

    #[test]
    fn only_data_packets_are_data() {
        let command = [3, 0, 24, 0, 0, 0, 0x40, 0, 2, 0, 2, 4, 0, 0, 0, 0, 0x80, 0x17, 0, 0, 0];
        let mut bytes = [0; 24];
        bytes[..21].copy_from_slice(&command);
        let packet = Packet::parse(&bytes, Width::W64).unwrap();
        assert_eq!(DataRepr::parse(&packet), Err(Error::WrongPacketType));
    }
}
