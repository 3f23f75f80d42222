//! The error type of this crate: a cause without data.

/// Shorthand for results of this crate.
pub type Result<T> = core::result::Result<T, Error>;

/// Why bytes were rejected, or why a packet cannot be written.
///
/// The receiver counts rejected packets; [`Error::name`] is the name of the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Error {
    /// Fewer bytes than one header word, or than the packet's own `Length`.
    Truncated,
    /// `Length` does not cover the packet's own header, timestamp and metadata.
    LengthTooSmall,
    /// A packet type that the protocol does not define (CHDR: 3 or 5).
    UnknownPacketType,
    /// A well-formed packet of another type than the requested one.
    WrongPacketType,
    /// The payload ends before the last field that the packet announces.
    PayloadTooShort,
    /// An operation code that the format does not define.
    UnknownOp,
    /// A status code that the format does not define.
    UnknownStatus,
    /// A control packet without a data word.
    NoData,
    /// A management packet written for another CHDR width.
    WidthMismatch,
    /// The "operations to come" counts of a management hop do not count down to 0.
    BadOpCount,
    /// More operations than the bounded management structs hold.
    TooManyOps,
    /// A management packet without a hop for this node to execute.
    NoHop,
    /// A management answer with no further hop to carry it.
    NoReplyHop,
    /// A value does not fit the bits of its field.
    FieldOverflow,
    /// The caller's buffer cannot hold the packet.
    BufferTooSmall,
    /// The packet would exceed the 65535 bytes that `Length` can express.
    PacketTooLong,
    /// Not an MPM discovery message.
    NotMpm,
    /// A message that is longer than any of its protocol.
    TooLong,
    /// Text that is not UTF-8, or has control or separator characters in a field.
    BadText,
    /// An IP packet of another version than 4.
    BadVersion,
    /// A header length that is shorter than the fixed header, or longer than the packet.
    BadHeaderLength,
    /// ARP for protocols other than IPv4 on Ethernet.
    NotIpv4OverEthernet,
    /// An 802.3 length where an Ethernet type is expected.
    NoEtherType,
}

impl Error {
    /// Every variant, in order of declaration: one counter each.
    pub const ALL: [Error; 23] = [
        Error::Truncated,
        Error::LengthTooSmall,
        Error::UnknownPacketType,
        Error::WrongPacketType,
        Error::PayloadTooShort,
        Error::UnknownOp,
        Error::UnknownStatus,
        Error::NoData,
        Error::WidthMismatch,
        Error::BadOpCount,
        Error::TooManyOps,
        Error::NoHop,
        Error::NoReplyHop,
        Error::FieldOverflow,
        Error::BufferTooSmall,
        Error::PacketTooLong,
        Error::NotMpm,
        Error::TooLong,
        Error::BadText,
        Error::BadVersion,
        Error::BadHeaderLength,
        Error::NotIpv4OverEthernet,
        Error::NoEtherType,
    ];

    /// Returns the name of the counter for this cause, in `snake_case`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Error::Truncated => "truncated",
            Error::LengthTooSmall => "length_too_small",
            Error::UnknownPacketType => "unknown_packet_type",
            Error::WrongPacketType => "wrong_packet_type",
            Error::PayloadTooShort => "payload_too_short",
            Error::UnknownOp => "unknown_op",
            Error::UnknownStatus => "unknown_status",
            Error::NoData => "no_data",
            Error::WidthMismatch => "width_mismatch",
            Error::BadOpCount => "bad_op_count",
            Error::TooManyOps => "too_many_ops",
            Error::NoHop => "no_hop",
            Error::NoReplyHop => "no_reply_hop",
            Error::FieldOverflow => "field_overflow",
            Error::BufferTooSmall => "buffer_too_small",
            Error::PacketTooLong => "packet_too_long",
            Error::NotMpm => "not_mpm",
            Error::TooLong => "too_long",
            Error::BadText => "bad_text",
            Error::BadVersion => "bad_version",
            Error::BadHeaderLength => "bad_header_length",
            Error::NotIpv4OverEthernet => "not_ipv4_over_ethernet",
            Error::NoEtherType => "no_ether_type",
        }
    }

    const fn message(self) -> &'static str {
        match self {
            Error::Truncated => "the datagram ends before the packet does",
            Error::LengthTooSmall => "the length field does not cover the packet's own headers",
            Error::UnknownPacketType => "the protocol does not define the packet type",
            Error::WrongPacketType => "the packet is of another type than expected",
            Error::PayloadTooShort => "the payload ends before its last field",
            Error::UnknownOp => "the operation code is not defined",
            Error::UnknownStatus => "the status code is not defined",
            Error::NoData => "the control packet has no data word",
            Error::WidthMismatch => "the management packet is for another CHDR width",
            Error::BadOpCount => "the operation counts of a management hop are inconsistent",
            Error::TooManyOps => "the management packet has more operations than supported",
            Error::NoHop => "the management packet has no hop left",
            Error::NoReplyHop => "the management packet has no hop for the answers",
            Error::FieldOverflow => "a value does not fit its field",
            Error::BufferTooSmall => "the buffer is too small for the packet",
            Error::PacketTooLong => "the packet would be longer than 65535 bytes",
            Error::NotMpm => "not an MPM discovery message",
            Error::TooLong => "the message is longer than its protocol allows",
            Error::BadText => "the message is not clean text",
            Error::BadVersion => "the IP packet is not of version 4",
            Error::BadHeaderLength => "the header length contradicts the packet",
            Error::NotIpv4OverEthernet => "the ARP packet is not for IPv4 on Ethernet",
            Error::NoEtherType => "the frame has an 802.3 length in place of an Ethernet type",
        }
    }
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.message())
    }
}

impl core::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of protocols in messages, and the files that may use a cause with that name.
    const NAMED: [(&str, &[&str]); 8] = [
        ("CHDR", &["chdr", "ctrl", "mgmt", "stream"]),
        ("MPM", &["mpm.rs"]),
        ("management", &["mgmt"]),
        ("control packet", &["ctrl"]),
        ("IP packet", &["ipv4.rs"]),
        ("IPv4", &["arp.rs", "ipv4.rs"]),
        ("ARP", &["arp.rs"]),
        ("Ethernet", &["ethernet.rs", "arp.rs"]),
    ];

    /// Every file of this crate's source, as a path from `src`, with its text.
    fn sources() -> Vec<(String, String)> {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let (mut found, mut folders) = (Vec::new(), vec![root.clone()]);
        while let Some(folder) = folders.pop() {
            for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                found.push((name, std::fs::read_to_string(path).unwrap()));
            }
        }
        found
    }

    #[test]
    fn no_error_names_the_protocol_of_another_parser() {
        let sources = sources();
        assert!(sources.len() > 20);
        let mut checked = 0;
        for cause in Error::ALL {
            let (variant, message) = (format!("Error::{cause:?}"), cause.message());
            let uses = sources.iter().filter(|(file, text)| {
                let after = |rest: &str| !rest.starts_with(|one: char| one.is_alphanumeric());
                file != "error.rs" && text.split(&variant).skip(1).any(after)
            });
            for (file, _) in uses {
                checked += 1;
                for (name, owners) in NAMED.iter().filter(|(name, _)| message.contains(name)) {
                    let is_owner = owners.iter().any(|owner| file.starts_with(owner));
                    assert!(is_owner, "{file} can say \"{message}\", which is about {name}");
                }
            }
        }
        assert!(checked > 50, "{checked}");
    }

    #[test]
    fn every_cause_has_its_own_name_and_message() {
        for (i, a) in Error::ALL.iter().enumerate() {
            assert_eq!(*a as usize, i, "ALL is in order of declaration and complete");
            for b in &Error::ALL[i + 1..] {
                assert_ne!(a.name(), b.name());
                assert_ne!(a.to_string(), b.to_string());
            }
        }
        assert_eq!(Error::Truncated.to_string(), "the datagram ends before the packet does");
    }
}
