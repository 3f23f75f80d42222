//! Messages and attributes (netlink(7), `linux/netlink.h`): headers and values in the machine's
//! byte order, everything padded to 4 bytes.

const HEADER_BYTES: usize = 16;
const ATTRIBUTE_HEADER_BYTES: usize = 4;
/// The two topmost bits of an attribute's type are flags.
const ATTRIBUTE_TYPE_MASK: u16 = 0x3FFF;

/// A request to the kernel under construction.
#[derive(Debug, Clone)]
pub(super) struct NetlinkRequest {
    bytes: Vec<u8>,
}

impl NetlinkRequest {
    /// Returns a message of a type, with flags, and the fixed part of its type.
    pub(super) fn new(kind: u16, flags: i32, fixed: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        let flags = (libc::NLM_F_REQUEST | flags) as u16;
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(fixed);
        Self { bytes }.padded()
    }

    /// Adds an [`attribute`].
    pub(super) fn with(mut self, kind: u16, value: &[u8]) -> Self {
        self.bytes.extend(attribute(kind, value));
        self.padded()
    }

    fn padded(mut self) -> Self {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    /// Returns the bytes to send; answers will carry `sequence`.
    pub(super) fn numbered(mut self, sequence: u32) -> Vec<u8> {
        let length = self.bytes.len() as u32;
        self.bytes[0..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }
}

/// Returns an attribute, without padding.
///
/// # Panics
/// If the value is longer than an attribute can be (64 KiB).
pub(super) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(ATTRIBUTE_HEADER_BYTES + value.len()).expect("a short value");
    [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat()
}

/// A message from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NetlinkMessage<'a> {
    pub(super) kind: u16,
    pub(super) flags: u16,
    pub(super) sequence: u32,
    /// The bytes after the header.
    pub(super) body: &'a [u8],
}

/// Returns the messages of one receive call, up to the first that is cut short.
pub(super) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = NetlinkMessage<'_>> {
    std::iter::from_fn(move || {
        let length = u32_at(bytes, 0)? as usize;
        let body = bytes.get(HEADER_BYTES..length)?;
        let (kind, flags) = (u16_at(bytes, 4)?, u16_at(bytes, 6)?);
        let message = NetlinkMessage { kind, flags, sequence: u32_at(bytes, 8)?, body };
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    })
}

/// Returns the attributes in a sequence, by type, up to the first that is cut short.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let value = bytes.get(ATTRIBUTE_HEADER_BYTES..length)?;
        let kind = u16_at(bytes, 2)? & ATTRIBUTE_TYPE_MASK;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// Returns the attributes after a fixed part of `fixed_bytes`.
pub(super) fn attributes_after(
    body: &[u8],
    fixed_bytes: usize,
) -> impl Iterator<Item = (u16, &[u8])> {
    attributes(body.get(fixed_bytes..).unwrap_or_default())
}

/// Returns the `N` bytes from `offset`.
fn array_at<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..)?.first_chunk().copied()
}

pub(super) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    array_at(bytes, offset).map(u16::from_ne_bytes)
}

pub(super) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    array_at(bytes, offset).map(u32::from_ne_bytes)
}

pub(super) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    array_at(bytes, offset).map(u64::from_ne_bytes)
}

/// Reads an IPv4 address, which is in network byte order.
pub(super) fn ipv4(value: &[u8]) -> Option<std::net::Ipv4Addr> {
    array_at::<4>(value, 0).map(std::net::Ipv4Addr::from)
}

/// Reads an Ethernet address; `None` for a hardware address of another kind.
pub(super) fn mac(value: &[u8]) -> Option<[u8; 6]> {
    value.try_into().ok()
}

/// Reads text that ends with a zero byte.
pub(super) fn text(value: &[u8]) -> String {
    let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let request =
            NetlinkRequest::new(18, libc::NLM_F_DUMP, &[7; 3]).with(3, b"veth0\0").with(4, &[]);
        let mut bytes = request.numbered(9);
        bytes.extend(NetlinkRequest::new(2, 0, &[]).numbered(10));
        let all: Vec<_> = messages(&bytes).collect();
        assert_eq!((all.len(), all[0].kind, all[0].sequence), (2, 18, 9));
        let found: Vec<_> = attributes_after(all[0].body, 4).collect();
        assert_eq!(found, [(3, &b"veth0\0"[..]), (4, &[][..])]);
        assert_eq!(text(found[0].1), "veth0");
    }

    #[test]
    fn lengths_that_lie_end_the_walk_and_nothing_else() {
        let good = NetlinkRequest::new(18, 0, &[0; 4]).with(3, b"abcd").numbered(1);
        for cut in 0..good.len() {
            assert_eq!(messages(&good[..cut]).count(), 0, "{cut} bytes");
        }
        let mut bad = good.clone();
        for length in [0u32, 1, 15, u32::MAX] {
            bad[0..4].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(messages(&bad).count(), 0, "a message of {length} bytes");
        }
        for length in [0u16, 3, 9, u16::MAX] {
            let mut run = [8, 0, 3, 0, 1, 2, 3, 4];
            run[..2].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(attributes(&run).count(), 0, "an attribute of {length} bytes");
        }
        assert_eq!(attributes_after(&[], 16).count(), 0);
    }
}
