//! MQTT 3.1.1 (OASIS standard, 29 October 2014), as far as a client needs it that only publishes
//! with quality of service 1. Clauses are those of the standard.

use crate::{Error, Result};

/// The packet PINGREQ (clause 3.12).
pub const PINGREQ: [u8; 2] = [0xC0, 0];
/// The packet DISCONNECT (clause 3.14).
pub const DISCONNECT: [u8; 2] = [0xE0, 0];

/// The longest packet of a server that is accepted, bytes behind its fixed header. Those that a
/// server sends to a client without subscriptions have two at most.
const REMAINING_MAX: usize = 64;

/// The largest remaining length (clause 2.2.3).
const REMAINING_LENGTH_MAX: usize = 0x0FFF_FFFF;

/// A packet of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokerPacket {
    /// CONNACK (clause 3.2) with its return code; 0 means that the connection is accepted.
    Connack(u8),
    /// PUBACK (clause 3.4): the message of this packet identifier arrived.
    Puback(u16),
    /// PINGRESP (clause 3.13).
    Pingresp,
}

impl BrokerPacket {
    /// Parses the first packet of `bytes`; returns it with its length, or `None` when it is not
    /// complete.
    ///
    /// # Errors
    /// [`Error::TooLong`] for a length that no such packet has; [`Error::UnknownPacketType`] for
    /// another type, or a type with another length or other flags.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>> {
        let [head, length, rest @ ..] = bytes else { return Ok(None) };
        let length = usize::from(*length);
        if length > REMAINING_MAX {
            return Err(Error::TooLong);
        }
        let Some(rest) = rest.get(..length) else { return Ok(None) };
        let packet = match (*head, rest) {
            (0x20, [_, code]) => Self::Connack(*code),
            (0x40, [high, low]) => Self::Puback(u16::from_be_bytes([*high, *low])),
            (0xD0, []) => Self::Pingresp,
            _ => return Err(Error::UnknownPacketType),
        };
        Ok(Some((packet, 2 + length)))
    }

    /// Returns the meaning of a return code of CONNACK (table 3.1).
    #[must_use]
    pub const fn refusal(code: u8) -> &'static str {
        match code {
            1 => "it does not speak MQTT 3.1.1",
            2 => "it refuses the client's name",
            3 => "it is not available",
            4 => "the user or the password is wrong",
            5 => "the client is not authorised",
            _ => "it gives no known reason",
        }
    }
}

/// The contents of a CONNECT packet (clause 3.1) of a clean session without a will.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectRepr<'a> {
    /// The client's name; a server closes an older connection with the same name.
    pub client: &'a str,
    /// User and password.
    pub login: Option<(&'a str, &'a str)>,
    /// The longest time between two packets of the client, seconds; 0 means without limit.
    pub keep_alive_s: u16,
}

impl ConnectRepr<'_> {
    /// Writes the packet; returns its length.
    ///
    /// # Errors
    /// [`Error::FieldOverflow`] for a text of more than 65535 bytes; [`Error::BufferTooSmall`].
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize> {
        let texts = [Some(self.client), self.login.map(|one| one.0), self.login.map(|one| one.1)];
        let payload: usize = texts.iter().flatten().map(|text| 2 + text.len()).sum();
        let mut out = Bytes { buffer, len: 0 };
        out.put(&[0x10])?;
        out.put_length(10 + payload)?;
        out.put_text("MQTT")?;
        // Level 4; clean session, and user and password where there are some.
        let flags = if self.login.is_some() { 0b1100_0010 } else { 0b0000_0010 };
        out.put(&[4, flags])?;
        out.put(&self.keep_alive_s.to_be_bytes())?;
        texts.iter().flatten().try_for_each(|text| out.put_text(text))?;
        Ok(out.len)
    }
}

/// Whether messages can be published to `topic` (clauses 4.7.1 and 4.7.3).
#[must_use]
pub fn is_topic(topic: &str) -> bool {
    let is_bad = |c: char| c == '#' || c == '+' || c.is_control();
    !topic.is_empty() && topic.len() <= usize::from(u16::MAX) && !topic.contains(is_bad)
}

/// Writes what comes before the `payload_len` bytes of a message with quality of service 1 (clause
/// 3.3); returns its length. `again` marks a message that was sent before.
///
/// # Errors
/// [`Error::BadText`] if [`is_topic`] says no; [`Error::FieldOverflow`] for the identifier 0 or a
/// message that is too long; [`Error::BufferTooSmall`].
pub fn emit_publish(
    topic: &str,
    identifier: u16,
    again: bool,
    payload_len: usize,
    buffer: &mut [u8],
) -> Result<usize> {
    if !is_topic(topic) {
        return Err(Error::BadText);
    }
    if identifier == 0 {
        return Err(Error::FieldOverflow);
    }
    let mut out = Bytes { buffer, len: 0 };
    out.put(&[0x32 | u8::from(again) << 3])?;
    out.put_length((4 + topic.len()).saturating_add(payload_len))?;
    out.put_text(topic)?;
    out.put(&identifier.to_be_bytes())?;
    Ok(out.len)
}

/// Bytes in a buffer of fixed size.
struct Bytes<'a> {
    buffer: &'a mut [u8],
    len: usize,
}

impl Bytes<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let end = self.len + bytes.len();
        let room = self.buffer.get_mut(self.len..end).ok_or(Error::BufferTooSmall)?;
        room.copy_from_slice(bytes);
        self.len = end;
        Ok(())
    }

    /// Writes text with its length (clause 1.5.3).
    fn put_text(&mut self, text: &str) -> Result<()> {
        let length = u16::try_from(text.len()).map_err(|_| Error::FieldOverflow)?;
        self.put(&length.to_be_bytes())?;
        self.put(text.as_bytes())
    }

    /// Writes a remaining length: seven bits a byte, the lowest first (clause 2.2.3).
    fn put_length(&mut self, length: usize) -> Result<()> {
        if length > REMAINING_LENGTH_MAX {
            return Err(Error::FieldOverflow);
        }
        let mut rest = length;
        loop {
            let more = u8::from(rest > 0x7F) << 7;
            self.put(&[(rest & 0x7F) as u8 | more])?;
            rest >>= 7;
            if rest == 0 {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_a_server_are_read_one_by_one() {
        let mut bytes: &[u8] = &[0x20, 2, 0, 0, 0x40, 2, 0x12, 0x34, 0xD0, 0, 0x40, 2, 1];
        let mut packets = Vec::new();
        while let Some((packet, len)) = BrokerPacket::parse(bytes).unwrap() {
            packets.push(packet);
            bytes = &bytes[len..];
        }
        let puback = BrokerPacket::Puback(0x1234);
        assert_eq!(packets, [BrokerPacket::Connack(0), puback, BrokerPacket::Pingresp]);
        assert_eq!(bytes.len(), 3, "the last one is not complete");
    }

    #[test]
    fn other_bytes_are_refused() {
        assert_eq!(BrokerPacket::parse(&[0x30, 2, 0, 0]), Err(Error::UnknownPacketType));
        assert_eq!(BrokerPacket::parse(&[0x40, 3, 0, 0, 0]), Err(Error::UnknownPacketType));
        assert_eq!(BrokerPacket::parse(&[0x40, 0xFF]), Err(Error::TooLong));
    }

    #[test]
    fn a_connect_packet_is_that_of_the_standard() {
        let mut buffer = [0; 64];
        let connect = ConnectRepr { client: "ms", login: Some(("u", "pw")), keep_alive_s: 30 };
        let len = connect.emit(&mut buffer).unwrap();
        let expected = b"\x10\x15\0\x04MQTT\x04\xC2\0\x1E\0\x02ms\0\x01u\0\x02pw";
        assert_eq!(&buffer[..len], expected);
    }

    #[test]
    fn a_message_has_a_length_of_one_to_four_bytes() {
        let mut buffer = [0; 64];
        let len = emit_publish("a/b", 10, false, 3, &mut buffer).unwrap();
        assert_eq!(&buffer[..len], b"\x32\x0A\0\x03a/b\0\x0A");
        let len = emit_publish("a/b", 10, true, 321 - 7, &mut buffer).unwrap();
        assert_eq!(&buffer[..3], [0x3A, 0xC1, 0x02], "321 as in clause 2.2.3");
        assert_eq!(len, 10);
        let most = REMAINING_LENGTH_MAX - 7;
        assert_eq!(emit_publish("a/b", 1, false, most, &mut buffer), Ok(12));
        let error = emit_publish("a/b", 1, false, most + 1, &mut buffer);
        assert_eq!(error, Err(Error::FieldOverflow));
        for topic in ["", "a/#", "a/+/b", "a\0"] {
            assert_eq!(emit_publish(topic, 1, false, 0, &mut buffer), Err(Error::BadText));
        }
        assert_eq!(emit_publish("a", 0, false, 0, &mut buffer), Err(Error::FieldOverflow));
    }
}
