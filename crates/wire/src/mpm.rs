//! MPM discovery and echo, text datagrams on UDP port 49600.
//!
//! A host sends `MPM-DISC`; each device answers
//! `USRP-MPM;type=e3xx;product=e320;serial=EMU0001;name=emu;fpga=n/a;claimed=False`.
//! A datagram that starts with `MPM-ECHO` is returned unchanged, which serves to ping and to
//! measure the largest datagram.

use crate::{Error, Result};

/// UDP port of discovery and echo.
pub const DISCOVERY_PORT: u16 = 49600;

/// TCP port of the MessagePack-RPC server.
pub const RPC_PORT: u16 = 49601;

/// The discovery request.
pub const DISCOVERY_REQUEST: &[u8; 8] = b"MPM-DISC";

/// The prefix of echo datagrams.
pub const ECHO_PREFIX: &[u8; 8] = b"MPM-ECHO";

/// The echo datagram that UHD sends as a ping.
pub const ECHO_PING: &[u8; 13] = b"MPM-ECHO ping";

/// The prefix of discovery replies.
pub const REPLY_PREFIX: &str = "USRP-MPM";

/// The longest discovery reply that is accepted, in bytes without trailing NULs.
pub const MAX_REPLY_LEN: usize = 2048;

/// A datagram to the discovery port of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscoveryRequest<'a> {
    /// A search for devices. Answer with [`emit_reply`].
    Discover,
    /// A request to send these bytes back unchanged.
    Echo(&'a [u8]),
}

impl<'a> DiscoveryRequest<'a> {
    /// Classifies a request. `MPM-DISC` may have trailing NULs, and `MPM-ECHO` any trailing bytes.
    ///
    /// # Errors
    /// [`Error::NotMpm`].
    pub fn parse(datagram: &'a [u8]) -> Result<DiscoveryRequest<'a>> {
        if datagram.starts_with(ECHO_PREFIX) {
            return Ok(DiscoveryRequest::Echo(datagram));
        }
        if trim_nuls(datagram) == DISCOVERY_REQUEST {
            return Ok(DiscoveryRequest::Discover);
        }
        Err(Error::NotMpm)
    }
}

/// A discovery reply: `key=value` fields behind the preamble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiscoveryReply<'a> {
    fields: &'a str,
}

impl<'a> DiscoveryReply<'a> {
    /// Checks a reply. Trailing NULs are cut off.
    ///
    /// # Errors
    /// [`Error::NotMpm`] without the preamble, [`Error::TooLong`] above [`MAX_REPLY_LEN`],
    /// [`Error::BadText`] if it is not UTF-8 or has control characters.
    pub fn parse(datagram: &'a [u8]) -> Result<DiscoveryReply<'a>> {
        let bytes = trim_nuls(datagram);
        let rest = bytes.strip_prefix(REPLY_PREFIX.as_bytes()).ok_or(Error::NotMpm)?;
        if !matches!(rest.first(), None | Some(b';')) {
            return Err(Error::NotMpm);
        }
        if bytes.len() > MAX_REPLY_LEN {
            return Err(Error::TooLong);
        }
        let fields = core::str::from_utf8(rest).map_err(|_| Error::BadText)?;
        if fields.chars().any(char::is_control) {
            return Err(Error::BadText);
        }
        Ok(DiscoveryReply { fields })
    }

    /// Returns the fields in order. Pieces without `=` or without a key are skipped; a value may
    /// itself contain `=`.
    pub fn fields(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.fields
            .split(';')
            .filter_map(|piece| piece.split_once('='))
            .filter(|(key, _)| !key.is_empty())
    }

    /// Returns the value of the first field with this key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.fields().find(|(k, _)| *k == key).map(|(_, value)| value)
    }
}

impl core::fmt::Display for DiscoveryReply<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (i, (key, value)) in self.fields().enumerate() {
            write!(f, "{}{key}={value}", if i > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

/// Writes a reply with these fields to `buf` and returns its length in bytes.
///
/// # Errors
/// [`Error::BadText`] for an empty key, a key with `=`, and for `;` or control characters
/// anywhere; [`Error::TooLong`] above [`MAX_REPLY_LEN`]; [`Error::BufferTooSmall`].
pub fn emit_reply(fields: &[(&str, &str)], buf: &mut [u8]) -> Result<usize> {
    let mut len = 0;
    let mut put = |text: &str| {
        let end = len + text.len();
        if end > MAX_REPLY_LEN {
            return Err(Error::TooLong);
        }
        buf.get_mut(len..end).ok_or(Error::BufferTooSmall)?.copy_from_slice(text.as_bytes());
        len = end;
        Ok(())
    };
    put(REPLY_PREFIX)?;
    for (key, value) in fields {
        let dirty = |text: &str| text.chars().any(|c| c == ';' || c.is_control());
        if key.is_empty() || key.contains('=') || dirty(key) || dirty(value) {
            return Err(Error::BadText);
        }
        for piece in [";", key, "=", value] {
            put(piece)?;
        }
    }
    Ok(len)
}

fn trim_nuls(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
    &bytes[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLY: &str = "USRP-MPM;type=e3xx;product=e320;serial=EMU0001;name=emu;fpga=n/a;\
                         claimed=False";

    #[test]
    fn requests_are_told_apart() {
        assert_eq!(DiscoveryRequest::parse(b"MPM-DISC"), Ok(DiscoveryRequest::Discover));
        assert_eq!(DiscoveryRequest::parse(b"MPM-DISC\0\0\0"), Ok(DiscoveryRequest::Discover));
        assert_eq!(DiscoveryRequest::parse(ECHO_PING), Ok(DiscoveryRequest::Echo(ECHO_PING)));
        assert_eq!(
            DiscoveryRequest::parse(b"MPM-ECHO\0\xff"),
            Ok(DiscoveryRequest::Echo(b"MPM-ECHO\0\xff"))
        );
        for bad in [&b""[..], b"\0", b"MPM-DIS", b"MPM-DISCO", b"mpm-disc", b"\0MPM-DISC"] {
            assert_eq!(DiscoveryRequest::parse(bad), Err(Error::NotMpm));
        }
    }

    #[test]
    fn a_reply_is_taken_apart_and_put_together() {
        let reply = DiscoveryReply::parse(REPLY.as_bytes()).unwrap();
        assert_eq!(reply.get("type"), Some("e3xx"));
        assert_eq!(reply.get("claimed"), Some("False"));
        assert_eq!(reply.get("addr"), None);
        let fields: Vec<_> = reply.fields().collect();
        let mut buf = [0xAA; 200];
        let len = emit_reply(&fields, &mut buf).unwrap();
        assert_eq!(&buf[..len], REPLY.as_bytes());
        assert_eq!(reply.to_string().split(", ").count(), 6);
    }

    #[test]
    fn replies_are_taken_with_nuls_and_odd_pieces() {
        let reply = DiscoveryReply::parse(b"USRP-MPM;;flag;=v;a=b=c;a=second;e=;\0\0").unwrap();
        let fields: Vec<_> = reply.fields().collect();
        assert_eq!(fields, [("a", "b=c"), ("a", "second"), ("e", "")]);
        assert_eq!(reply.get("a"), Some("b=c"));
        assert_eq!(DiscoveryReply::parse(b"USRP-MPM").unwrap().fields().count(), 0);
    }

    #[test]
    fn bad_replies_are_refused_by_cause() {
        assert_eq!(DiscoveryReply::parse(b"USRP-MPX;a=b"), Err(Error::NotMpm));
        assert_eq!(DiscoveryReply::parse(b"USRP-MPMa=b"), Err(Error::NotMpm));
        assert_eq!(DiscoveryReply::parse(b"USRP-MPM;a=\xff"), Err(Error::BadText));
        assert_eq!(DiscoveryReply::parse(b"USRP-MPM;a=\x1b[2J"), Err(Error::BadText));
        assert_eq!(DiscoveryReply::parse(b"USRP-MPM;a\0b=c"), Err(Error::BadText));
        let mut long = REPLY.as_bytes().to_vec();
        long.resize(MAX_REPLY_LEN + 1, b'x');
        assert_eq!(DiscoveryReply::parse(&long), Err(Error::TooLong));
        long.pop();
        assert!(DiscoveryReply::parse(&long).is_ok());
    }

    #[test]
    fn fields_that_would_not_be_read_back_are_not_written() {
        let mut buf = [0; 64];
        for bad in [("", "v"), ("k=", "v"), ("k;", "v"), ("k", "v;w"), ("k", "\n"), ("k", "\0")] {
            assert_eq!(emit_reply(&[bad], &mut buf), Err(Error::BadText));
        }
        assert_eq!(emit_reply(&[("k", "v")], &mut buf[..11]), Err(Error::BufferTooSmall));
        assert_eq!(emit_reply(&[("k", "v")], &mut buf[..12]), Ok(12));
        let long = "x".repeat(MAX_REPLY_LEN);
        assert_eq!(emit_reply(&[("k", &long)], &mut [0; 4096]), Err(Error::TooLong));
    }
}
