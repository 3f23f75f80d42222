//! The text protocol of NATS, as far as a client needs it that only publishes.
//!
//! It follows the reference "Client protocol" of the NATS documentation: every line ends with a
//! carriage return and a line feed, names of operations have any case, and the server handles the
//! operations of a connection in their order. So a `PONG` acknowledges all that was sent before its
//! `PING`.

use crate::{Error, Result};
use core::fmt::{self, Write};

/// The longest line of a server that is accepted, bytes: `INFO` lists the servers of a cluster.
pub const LINE_BYTES_MAX: usize = 32 << 10;

/// The operation `PING`, with the end of its line.
pub const PING: &[u8] = b"PING\r\n";
/// The operation `PONG`, with the end of its line.
pub const PONG: &[u8] = b"PONG\r\n";

/// An operation of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerOp<'a> {
    /// `INFO`: its properties, a JSON object. The first line, and when they change.
    Info(&'a [u8]),
    /// `+OK`.
    Ok,
    /// `-ERR`: the reason, with its quotes.
    Err(&'a [u8]),
    /// `PING`, which the client has to answer.
    Ping,
    /// `PONG`.
    Pong,
}

impl<'a> ServerOp<'a> {
    /// Parses the first line of `bytes`; returns the operation and the bytes of its line, or `None`
    /// when the line is not complete.
    ///
    /// # Errors
    /// [`Error::TooLong`] for a line longer than [`LINE_BYTES_MAX`]; [`Error::UnknownOp`] for any
    /// other operation.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<(Self, usize)>> {
        let within = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
        let Some(end) = within.iter().position(|byte| *byte == b'\n') else {
            let is_too_long = bytes.len() >= LINE_BYTES_MAX;
            return if is_too_long { Err(Error::TooLong) } else { Ok(None) };
        };
        let line = bytes[..end].trim_ascii();
        let split = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        let (name, rest) = (&line[..split], line[split..].trim_ascii());
        let op = match () {
            () if name.eq_ignore_ascii_case(b"INFO") => Self::Info(rest),
            () if name.eq_ignore_ascii_case(b"+OK") => Self::Ok,
            () if name.eq_ignore_ascii_case(b"-ERR") => Self::Err(rest),
            () if name.eq_ignore_ascii_case(b"PING") => Self::Ping,
            () if name.eq_ignore_ascii_case(b"PONG") => Self::Pong,
            () => return Err(Error::UnknownOp),
        };
        Ok(Some((op, end + 1)))
    }
}

/// Whether messages can be published to `subject`: tokens between points, without white space,
/// wildcards and control characters.
#[must_use]
pub fn is_subject(subject: &str) -> bool {
    let is_token = |token: &str| {
        !token.is_empty() && !token.contains(|c: char| c.is_whitespace() || c.is_control())
    };
    subject.split('.').all(|token| is_token(token) && token != "*" && token != ">")
}

/// Writes the line before a message of `payload_len` bytes, which `\r\n` follows; returns its
/// length.
///
/// # Errors
/// [`Error::BadText`] if [`is_subject`] says no; [`Error::BufferTooSmall`].
pub fn emit_publish(subject: &str, payload_len: usize, buffer: &mut [u8]) -> Result<usize> {
    if !is_subject(subject) {
        return Err(Error::BadText);
    }
    let mut text = Text { buffer, len: 0 };
    write!(text, "PUB {subject} {payload_len}\r\n").map_err(|_| Error::BufferTooSmall)?;
    Ok(text.len)
}

/// Text in a buffer of fixed size.
struct Text<'a> {
    buffer: &'a mut [u8],
    len: usize,
}

impl Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len + text.len();
        let room = self.buffer.get_mut(self.len..end).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_server_are_read_one_by_one() {
        let mut bytes: &[u8] =
            b"INFO {\"max_payload\":1048576} \r\nPING\r\n+OK\r\npong\r\n-ERR 'no'\r\nPI";
        let mut ops = Vec::new();
        while let Some((op, len)) = ServerOp::parse(bytes).unwrap() {
            ops.push(op);
            bytes = &bytes[len..];
        }
        let info = ServerOp::Info(b"{\"max_payload\":1048576}");
        let err = ServerOp::Err(b"'no'");
        assert_eq!(ops, [info, ServerOp::Ping, ServerOp::Ok, ServerOp::Pong, err]);
        assert_eq!(bytes, b"PI");
    }

    #[test]
    fn other_bytes_are_refused() {
        assert_eq!(ServerOp::parse(b"MSG a 1 2\r\n"), Err(Error::UnknownOp));
        assert_eq!(ServerOp::parse(b"\r\n"), Err(Error::UnknownOp));
        assert_eq!(ServerOp::parse(b"\xff\xfe\n"), Err(Error::UnknownOp));
        assert_eq!(ServerOp::parse(b""), Ok(None));
        assert_eq!(ServerOp::parse(&[b'I'; LINE_BYTES_MAX]), Err(Error::TooLong));
    }

    #[test]
    fn a_subject_cannot_smuggle_an_operation() {
        for subject in ["", ".", "a.", "a b", "a\r\nPUB b 0", "a.*", ">", "a.>", "a\u{7}"] {
            assert!(!is_subject(subject), "{subject:?}");
            assert_eq!(emit_publish(subject, 0, &mut [0; 64]), Err(Error::BadText));
        }
        let mut buffer = [0; 64];
        let len = emit_publish("radio.ts.1", 188, &mut buffer).unwrap();
        assert_eq!(&buffer[..len], b"PUB radio.ts.1 188\r\n");
        assert_eq!(emit_publish("radio", 1, &mut [0; 8]), Err(Error::BufferTooSmall));
    }
}
