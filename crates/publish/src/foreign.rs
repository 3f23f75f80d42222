//! What a server speaks that does not speak the expected protocol.

use crate::OutletError;
use std::fmt::Write;

/// The first bytes of servers that users reach by a wrong port.
const PROTOCOLS: [(&[u8], &str); 7] = [
    (b"HTTP/", "HTTP"),
    (b"INFO {", "NATS"),
    (b"-ERR", "NATS or Redis"),
    (b"SSH-", "SSH"),
    (b"\x16\x03", "TLS"),
    (b"\x15\x03", "TLS"),
    (b"220", "FTP or SMTP"),
];

/// Bytes of an unknown protocol that are shown.
const SHOWN: usize = 8;

/// Returns the error for an answer that is not of `protocol`: it names the other one, or shows how
/// the answer begins.
pub(crate) fn foreign(
    (who, protocol): (&str, &str),
    answer: &[u8],
    error: millstream_wire::Error,
) -> OutletError {
    let known = PROTOCOLS.iter().find(|(start, _)| answer.starts_with(start));
    let found = known.map_or_else(
        || format!("{error}; {}", begin(answer)),
        |(_, name)| format!("it answered {name}; check the address and the port"),
    );
    OutletError(format!("{who} does not speak {protocol}: {found}"))
}

fn begin(answer: &[u8]) -> String {
    let mut text = "its answer begins with".to_owned();
    for byte in answer.iter().take(SHOWN) {
        let _ = write!(text, " {byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_wire::Error;

    #[test]
    fn a_wrong_port_is_named_by_what_answers_there() {
        let said = |answer: &[u8]| foreign(("the broker", "MQTT"), answer, Error::TooLong).0;
        let http =
            "the broker does not speak MQTT: it answered HTTP; check the address and the port";
        assert_eq!(said(b"HTTP/1.1 400 Bad Request\r\n\r\n"), http);
        assert!(said(b"INFO {\"server_id\":1}\r\n").contains("it answered NATS; "));
        assert!(said(b"SSH-2.0-OpenSSH\r\n").contains("it answered SSH; "));
        let unknown = said(b"\x1b[2Jxxxxxxxxxxxxxxxxx");
        assert!(unknown.ends_with("; its answer begins with 1b 5b 32 4a 78 78 78 78"), "{unknown}");
    }
}
