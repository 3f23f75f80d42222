//! The versions of the protocol, and control packets of each.

use super::{CtrlRepr, DataWords, MAX_DATA_WORDS};
use crate::bits::{field, fit};
use crate::chdr::{Packet, PacketType, Width, header_len, put_plain_header};
use crate::{Epid, Error, Result};

/// The version of RFNoC's protocol that an image speaks. It determines the layout of control
/// packets; all other packets are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Protocol {
    /// 1.0, of UHD 4.0 to 4.10.
    #[default]
    V1,
    /// 2.0, of UHD 4.11 on.
    V2,
}

impl Protocol {
    /// Returns the protocol of a version as devices report it: major number in the upper byte,
    /// minor one in the lower. `None` for a major number other than 1 and 2.
    #[must_use]
    pub const fn from_version(version: u16) -> Option<Protocol> {
        match version >> 8 {
            1 => Some(Protocol::V1),
            2 => Some(Protocol::V2),
            _ => None,
        }
    }

    /// Returns the version as devices report it.
    #[must_use]
    pub const fn version(self) -> u16 {
        match self {
            Protocol::V1 => 0x0100,
            Protocol::V2 => 0x0200,
        }
    }

    /// Returns the number of control sequence numbers: they are counted modulo this.
    #[must_use]
    pub const fn sequence_modulus(self) -> u16 {
        match self {
            Protocol::V1 => 64,
            Protocol::V2 => 256,
        }
    }

    /// Returns the 32-bit words that a request occupies in its block's command FIFO.
    #[must_use]
    pub fn credit_words(self, repr: &CtrlRepr) -> usize {
        match self {
            Protocol::V1 => repr.credit_words(),
            Protocol::V2 => repr.credit_words() + 1,
        }
    }

    /// Reads a control packet.
    ///
    /// # Errors
    /// [`Error::WrongPacketType`], [`Error::PayloadTooShort`], in protocol 1.0
    /// [`Error::NoData`].
    pub fn parse(self, packet: &Packet<'_>) -> Result<CtrlRepr> {
        match self {
            Protocol::V1 => CtrlRepr::parse(packet),
            Protocol::V2 => parse(packet),
        }
    }

    /// Returns the bytes of a control packet at this width.
    #[must_use]
    pub fn packet_len(self, repr: &CtrlRepr, width: Width) -> usize {
        match self {
            Protocol::V1 => repr.packet_len(width),
            Protocol::V2 => {
                let words = 3 + 2 * usize::from(repr.timestamp.is_some()) + repr.data.len();
                header_len(PacketType::Control, width) + 4 * words
            }
        }
    }

    /// Writes a control packet and returns [`Protocol::packet_len`].
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`], [`Error::FieldOverflow`], in protocol 1.0 [`Error::NoData`].
    pub fn emit(self, repr: &CtrlRepr, width: Width, buf: &mut [u8]) -> Result<usize> {
        match self {
            Protocol::V1 => repr.emit(width, buf),
            Protocol::V2 => emit(repr, width, buf),
        }
    }
}

/// The 32-bit words of a payload of protocol 2.0.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn next(&mut self) -> Result<u64> {
        let (word, rest) = self.0.split_first_chunk().ok_or(Error::PayloadTooShort)?;
        self.0 = rest;
        Ok(u32::from_le_bytes(*word).into())
    }
}

fn parse(packet: &Packet<'_>) -> Result<CtrlRepr> {
    let mut words = Words(packet.payload_of(PacketType::Control)?);
    let (first, second) = (words.next()?, words.next()?);
    let timestamp = match field(first, 14, 1) {
        0 => None,
        _ => Some(words.next()? | words.next()? << 32),
    };
    let op = words.next()?;
    let mut data = [0; MAX_DATA_WORDS];
    let data = &mut data[..field(first, 10, 4) as usize];
    for word in data.iter_mut() {
        *word = words.next()? as u32;
    }
    Ok(CtrlRepr {
        dst_epid: packet.header().dst_epid,
        seq: packet.header().seq,
        src_epid: Epid(field(first, 16, 16) as u16),
        dst_port: field(first, 0, 10) as u16,
        src_port: field(second, 0, 10) as u16,
        ctrl_seq: field(second, 20, 8) as u8,
        is_ack: field(first, 15, 1) != 0,
        timestamp,
        data: if data.is_empty() { DataWords::NONE } else { DataWords::new(data)? },
        read_words: field(second, 28, 4) as u8,
        ..CtrlRepr::of_operation(op)
    })
}

fn emit(repr: &CtrlRepr, width: Width, buf: &mut [u8]) -> Result<usize> {
    let len = Protocol::V2.packet_len(repr, width);
    let mut out = crate::bits::WordWriter::new(buf);
    put_plain_header(PacketType::Control, repr.dst_epid, repr.seq, len, width, &mut out)?;
    let at = out.len();
    let mut chunks = buf.get_mut(at..len).ok_or(Error::BufferTooSmall)?.chunks_exact_mut(4);
    // The iterator ends with the last word of `packet_len`.
    let mut put = |word: u64| {
        if let Some(chunk) = chunks.next() {
            chunk.copy_from_slice(&(word as u32).to_le_bytes());
        }
    };
    put(fit(repr.dst_port.into(), 0, 10)?
        | fit(repr.data.len() as u64, 10, 4)?
        | u64::from(repr.timestamp.is_some()) << 14
        | u64::from(repr.is_ack) << 15
        | u64::from(repr.src_epid.0) << 16);
    put(fit(repr.src_port.into(), 0, 10)?
        | u64::from(repr.ctrl_seq) << 20
        | fit(repr.read_words.into(), 28, 4)?);
    if let Some(ticks) = repr.timestamp {
        put(ticks & 0xFFFF_FFFF);
        put(ticks >> 32);
    }
    put(repr.operation()?);
    repr.data.iter().for_each(|word| put((*word).into()));
    Ok(len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ctrl::{ControlStatus, Op};

    /// Reads a packet, checks that it is written the same, and returns it.
    fn both(hex: &str) -> CtrlRepr {
        let bytes: [Option<u8>; 40] = {
            let mut digits = hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).ok());
            core::array::from_fn(|_| digits.next().flatten())
        };
        let len = bytes.iter().flatten().count();
        let bytes = bytes.map(Option::unwrap_or_default);
        let packet = Packet::parse(&bytes[..len], Width::W64).unwrap();
        let repr = Protocol::V2.parse(&packet).unwrap();
        let mut written = [0xAA; 40];
        assert_eq!(Protocol::V2.emit(&repr, Width::W64, &mut written), Ok(len));
        assert_eq!(written[..len], bytes[..len]);
        assert_eq!(
            Protocol::V2.emit(&repr, Width::W64, &mut written[..len - 1]),
            Err(Error::BufferTooSmall)
        );
        // Each cut is refused, whatever the header says.
        let mut cut = bytes;
        for short in 8..len {
            cut[2] = short as u8;
            let packet = Packet::parse(&cut[..short], Width::W64).unwrap();
            let outcome = Protocol::V2.parse(&packet);
            assert_eq!(outcome, Err(Error::PayloadTooShort), "{short} of {len}");
        }
        repr
    }

    /// The write of 0x8000_0001 to 0x1104 of port 3 under number 0x85, as UHD 4.11 sends it.
    fn write() -> CtrlRepr {
        CtrlRepr {
            dst_epid: Epid(2),
            src_epid: Epid(1),
            seq: 7,
            dst_port: 3,
            src_port: 3,
            ctrl_seq: 0x85,
            address: 0x1104,
            op: Op::Write,
            data: DataWords::one(0x8000_0001),
            ..CtrlRepr::default()
        }
    }

    #[test]
    fn the_packets_of_uhd_4_11_are_read_and_written() {
        let plain = "02 00 18 00 07 00 80 00  03 04 01 00 03 00 50 08  04 11 f0 01  01 00 00 80";
        assert_eq!(both(plain), write());
        let ack = "01 00 14 00 09 00 80 00  03 80 02 00 03 00 50 08  04 11 f0 01";
        assert_eq!(both(ack), write().ack(9, ControlStatus::Ok, DataWords::NONE));
        let timed = "02 00 20 00 07 00 80 00  03 44 01 00 03 00 50 08  89 67 45 23 01 00 00 00  \
                     04 11 f0 01  01 00 00 80";
        let time = Some(0x1_2345_6789);
        assert_eq!(both(timed), CtrlRepr { timestamp: time, ..write() });
        let read = "02 00 14 00 07 00 80 00  03 00 01 00 03 00 60 18  04 10 f0 02";
        let asked = CtrlRepr {
            ctrl_seq: 0x86,
            address: 0x1004,
            op: Op::Read,
            data: DataWords::NONE,
            read_words: 1,
            ..write()
        };
        assert_eq!(both(read), asked);
        let answer = "01 00 18 00 0a 00 80 00  03 84 02 00 03 00 60 18  04 10 f0 02  01 00 20 00";
        assert_eq!(both(answer), asked.ack(10, ControlStatus::Ok, DataWords::one(0x20_0001)));
        let block = both("02 00 14 00 07 00 80 00  03 00 01 00 03 00 70 38  10 11 f0 05");
        let (op, words, address) = (Op::BlockRead, 3, 0x1110);
        assert_eq!(block, CtrlRepr { ctrl_seq: 0x87, op, read_words: words, address, ..asked });
    }

    #[test]
    fn values_that_do_not_fit_are_not_cut_off() {
        let mut buf = [0; 64];
        for too_much in [
            CtrlRepr { dst_port: 1 << 10, ..write() },
            CtrlRepr { src_port: 1 << 10, ..write() },
            CtrlRepr { read_words: 16, ..write() },
            CtrlRepr { address: 1 << 20, ..write() },
            CtrlRepr { byte_enables: 16, ..write() },
            CtrlRepr { op: Op::Other(1), ..write() },
        ] {
            let outcome = Protocol::V2.emit(&too_much, Width::W64, &mut buf);
            assert_eq!(outcome, Err(Error::FieldOverflow));
        }
        let empty = CtrlRepr { data: DataWords::NONE, ctrl_seq: 1, ..write() };
        assert_eq!(Protocol::V1.emit(&empty, Width::W64, &mut buf), Err(Error::NoData));
    }

    #[test]
    fn every_protocol_has_its_version_and_numbers() {
        for protocol in [Protocol::V1, Protocol::V2] {
            assert_eq!(Protocol::from_version(protocol.version()), Some(protocol));
            assert_eq!(Protocol::from_version(protocol.version() | 0xFF), Some(protocol));
            assert!(protocol.sequence_modulus() <= 256);
        }
        assert_eq!(Protocol::from_version(0x0300), None);
        let read = CtrlRepr { data: DataWords::NONE, read_words: 1, ..write() };
        assert_eq!(Protocol::V2.credit_words(&read), 3);
        assert_eq!(Protocol::V1.credit_words(&write()), 3);
    }

    #[test]
    fn bytes_behind_the_last_word_are_ignored() {
        let mut bytes = [0; 40];
        let len = Protocol::V2.emit(&write(), Width::W64, &mut bytes).unwrap();
        bytes[2] = len as u8 + 7;
        let packet = Packet::parse(&bytes[..len + 7], Width::W64).unwrap();
        assert_eq!(Protocol::V2.parse(&packet), Ok(write()));
    }
}
