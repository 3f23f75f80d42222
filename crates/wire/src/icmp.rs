//! Internet control messages (RFC 792; RFC 1191 for the MTU in "fragmentation needed").

use core::net::SocketAddrV4;

use crate::bits::be16;
use crate::checksum::Sum;
use crate::{Error, Result, ipv4, udp};

/// Bytes of the header that all messages have.
pub const HEADER_LEN: usize = 8;

/// Codes of [`Message::Unreachable`].
pub mod unreachable {
    /// No program has the port open.
    pub const PORT: u8 = 3;
    /// The packet is longer than the next link carries, and must not be fragmented.
    pub const FRAGMENTATION_NEEDED: u8 = 4;
}

/// The content of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// 8: requests an echo.
    EchoRequest {
        /// The id of the requesting program.
        id: u16,
        /// The number of the request.
        seq: u16,
    },
    /// 0: answers a request.
    EchoReply {
        /// The id of the requesting program.
        id: u16,
        /// The number of the request.
        seq: u16,
    },
    /// 3: a packet did not arrive.
    Unreachable {
        /// The reason, one of [`mod@unreachable`] or another.
        code: u8,
        /// The longest packet that would have passed, for "fragmentation needed".
        mtu: u16,
    },
    /// Another message.
    Other {
        /// Its type.
        kind: u8,
        /// Its code.
        code: u8,
    },
}

/// A message whose header is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    bytes: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Checks the header, but not the checksum.
    ///
    /// # Errors
    /// [`Error::Truncated`].
    pub fn parse(bytes: &'a [u8]) -> Result<Packet<'a>> {
        if bytes.len() < HEADER_LEN { Err(Error::Truncated) } else { Ok(Packet { bytes }) }
    }

    /// Returns the content of the message.
    #[must_use]
    pub fn message(&self) -> Message {
        let (id, seq) = (be16(self.bytes, 4), be16(self.bytes, 6));
        match (self.bytes[0], self.bytes[1]) {
            (8, 0) => Message::EchoRequest { id, seq },
            (0, 0) => Message::EchoReply { id, seq },
            (3, code) => Message::Unreachable { code, mtu: seq },
            (kind, code) => Message::Other { kind, code },
        }
    }

    /// Returns whether its checksum is right; the whole message must have been parsed.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        Sum::new().bytes(self.bytes).is_whole()
    }

    /// Returns the checksum as sent.
    #[must_use]
    pub fn checksum(&self) -> u16 {
        be16(self.bytes, 2)
    }

    /// Returns whether it reports an error, so that no answer is allowed (RFC 1122, 3.2.2).
    #[must_use]
    pub fn is_error(&self) -> bool {
        matches!(self.bytes[0], 3..=5 | 11 | 12)
    }

    /// Returns the bytes behind the header: echoed data, or the start of the packet in error.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[HEADER_LEN..]
    }

    /// Returns the datagram in error, if the message reports one and it was UDP.
    #[must_use]
    pub fn failed_datagram(&self) -> Option<FailedDatagram> {
        if !self.is_error() {
            return None;
        }
        let ip = ipv4::Header::parse(self.payload()).ok()?;
        if ip.protocol() != ipv4::protocol::UDP || !ip.is_first() {
            return None;
        }
        let udp = udp::Header::parse(&self.payload()[ip.header_len()..]).ok()?;
        Some(FailedDatagram {
            from: SocketAddrV4::new(ip.source(), udp.source_port()),
            to: SocketAddrV4::new(ip.destination(), udp.destination_port()),
            packet_len: ip.total_len(),
        })
    }
}

/// A UDP datagram, read from its start in an error message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedDatagram {
    /// The source address.
    pub from: SocketAddrV4,
    /// The destination address.
    pub to: SocketAddrV4,
    /// Bytes of the whole packet, including its IP header, from that header.
    pub packet_len: usize,
}

/// Writes the answer to a whole echo request, given in pieces, and returns its length in bytes.
///
/// # Errors
/// [`Error::BufferTooSmall`], [`Error::Truncated`].
pub fn emit_echo_reply<'b>(
    request: impl IntoIterator<Item = &'b [u8]>,
    buf: &mut [u8],
) -> Result<usize> {
    let mut len = 0;
    for piece in request {
        let into = buf.get_mut(len..len + piece.len()).ok_or(Error::BufferTooSmall)?;
        into.copy_from_slice(piece);
        len += piece.len();
    }
    if len < HEADER_LEN {
        return Err(Error::Truncated);
    }
    buf[..4].fill(0);
    finish(&mut buf[..len]);
    Ok(len)
}

/// Writes "unreachable" about a packet, with `quote` as the start of that packet.
///
/// # Errors
/// [`Error::BufferTooSmall`].
pub fn emit_unreachable(code: u8, quote: &[u8], buf: &mut [u8]) -> Result<usize> {
    let len = HEADER_LEN + quote.len();
    let buf = buf.get_mut(..len).ok_or(Error::BufferTooSmall)?;
    buf[..HEADER_LEN].copy_from_slice(&[3, code, 0, 0, 0, 0, 0, 0]);
    buf[HEADER_LEN..].copy_from_slice(quote);
    finish(buf);
    Ok(len)
}

fn finish(message: &mut [u8]) {
    let checksum = Sum::new().bytes(message).checksum();
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use super::*;

    #[test]
    fn an_echo_reply_gives_back_every_byte() {
        let mut request = vec![8, 0, 0, 0, 0x12, 0x34, 0, 9];
        request.extend(1..=101);
        finish(&mut request);
        let mut reply = [0xAA; 200];
        let len = emit_echo_reply([&request[..20], &request[20..]], &mut reply).unwrap();
        let packet = Packet::parse(&reply[..len]).unwrap();
        assert!(packet.is_whole());
        assert_eq!(packet.message(), Message::EchoReply { id: 0x1234, seq: 9 });
        assert_eq!(packet.payload(), &request[8..]);
        assert_eq!(reply[len], 0xAA);
        let short = emit_echo_reply([&request[..]], &mut reply[..len - 1]);
        assert_eq!(short, Err(Error::BufferTooSmall));
        assert_eq!(emit_echo_reply([&request[..7]], &mut reply), Err(Error::Truncated));
    }

    #[test]
    fn an_error_names_the_datagram_that_it_is_about() {
        let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let mut quote = [0; 28];
        let ip = ipv4::Ipv4Repr {
            source: from,
            destination: to,
            protocol: ipv4::protocol::UDP,
            hop_limit: 64,
            traffic_class: 0,
            id: 0,
            payload_len: 1000,
        };
        let udp = udp::UdpRepr { source_port: 5, destination_port: 6 };
        let at = ip.emit(&mut quote).unwrap();
        udp.emit(from, to, &[0; 992], &mut quote[at..]).unwrap();
        let mut message = [0; 36];
        emit_unreachable(unreachable::PORT, &quote, &mut message).unwrap();
        let packet = Packet::parse(&message).unwrap();
        assert!(packet.is_whole() && packet.is_error());
        let failed = packet.failed_datagram().unwrap();
        assert_eq!(
            (failed.from, failed.to),
            (SocketAddrV4::new(from, 5), SocketAddrV4::new(to, 6))
        );
        assert_eq!(failed.packet_len, 1020, "as stated, of which only the start is quoted");
        assert_eq!(Packet::parse(&message[..35]).unwrap().failed_datagram(), None);
    }
}
