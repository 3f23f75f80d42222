//! Finds the end of a MessagePack object: MPM's remote procedure calls put no length before a
//! message.
//!
//! The scan uses sizes, not content, and allocates nothing. A message that it reports as complete
//! is whole, short and shallow, so a decoder can process it safely.
//!
//! ```
//! use millstream_wire::msgpack::{MessageLimits, Scan, scan};
//!
//! const LIMITS: MessageLimits = MessageLimits { bytes: 100, depth: 4, items: 10 };
//! // [1, "ab"], and the start of the next message.
//! let stream = [0x92, 0x01, 0xA2, b'a', b'b', 0x94];
//! assert_eq!(scan(&stream, &LIMITS), Ok(Scan::Complete(5)));
//! assert_eq!(scan(&stream[..4], &LIMITS), Ok(Scan::NeedMore));
//! ```

/// The deepest nesting that [`MessageLimits::depth`] can allow.
pub const DEPTH_MAX: usize = 16;

/// The size limits of a message. A message beyond any of them is rejected as soon as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageLimits {
    /// Longest message, bytes.
    pub bytes: usize,
    /// Deepest nesting of arrays and maps; never more than [`DEPTH_MAX`].
    pub depth: usize,
    /// Most elements of all arrays and maps together; a map's entry is two.
    pub items: u64,
}

/// The result of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scan {
    /// The first object ends after this many bytes, all of which have arrived.
    Complete(usize),
    /// The first object has not arrived completely.
    NeedMore,
}

/// Why bytes are not a message: the stream cannot be decoded further and must be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScanError {
    /// The object is longer than [`MessageLimits::bytes`].
    TooLong,
    /// Containers nest deeper than [`MessageLimits::depth`].
    TooDeep,
    /// More elements than [`MessageLimits::items`].
    TooManyItems,
    /// The byte 0xC1, which MessagePack never uses.
    Reserved,
}

impl core::fmt::Display for ScanError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::TooLong => "the message is too long",
            Self::TooDeep => "the message nests too deep",
            Self::TooManyItems => "the message has too many elements",
            Self::Reserved => "the byte 0xC1 is not MessagePack",
        })
    }
}

impl core::error::Error for ScanError {}

/// Searches for the end of the first object in `bytes`.
///
/// # Errors
/// [`ScanError`] for bytes that cannot become a message within `limits`, however many follow.
pub fn scan(bytes: &[u8], limits: &MessageLimits) -> Result<Scan, ScanError> {
    // Elements still to come of each open container.
    let mut open = [0u64; DEPTH_MAX];
    let open = &mut open[..limits.depth.min(DEPTH_MAX)];
    let (mut depth, mut items, mut at) = (0, 0u64, 0usize);
    loop {
        let Some(item) = item(bytes.get(at..).unwrap_or_default())? else {
            let full = at >= limits.bytes || bytes.len() >= limits.bytes;
            return if full { Err(ScanError::TooLong) } else { Ok(Scan::NeedMore) };
        };
        at = at.saturating_add(item.bytes);
        if at > limits.bytes {
            return Err(ScanError::TooLong);
        }
        items = items.saturating_add(item.children);
        if items > limits.items {
            return Err(ScanError::TooManyItems);
        }
        if item.children > 0 {
            *open.get_mut(depth).ok_or(ScanError::TooDeep)? = item.children;
            depth += 1;
            continue;
        }
        // A leaf ends every container whose last element it is.
        while depth > 0 {
            open[depth - 1] -= 1;
            if open[depth - 1] > 0 {
                break;
            }
            depth -= 1;
        }
        if depth == 0 {
            let whole = at <= bytes.len();
            return Ok(if whole { Scan::Complete(at) } else { Scan::NeedMore });
        }
    }
}

/// The bytes of an item without its children, and the number of those.
struct Item {
    bytes: usize,
    children: u64,
}

/// Reads the item at the start of `bytes` (MessagePack specification, "Formats"); `None` when its
/// own size has not arrived.
fn item(bytes: &[u8]) -> Result<Option<Item>, ScanError> {
    let Some((&first, rest)) = bytes.split_first() else { return Ok(None) };
    let length = |width: usize| {
        rest.get(..width).map(|field| field.iter().fold(0u64, |n, &byte| n << 8 | u64::from(byte)))
    };
    let leaf = |bytes: usize| Some(Item { bytes, children: 0 });
    let blob = |width: usize, extra: usize| {
        let size =
            |n: u64| (1 + width + extra).saturating_add(usize::try_from(n).unwrap_or(usize::MAX));
        length(width).map(|n| Item { bytes: size(n), children: 0 })
    };
    let group = |width: usize, each: u64| {
        length(width).map(|n| Item { bytes: 1 + width, children: n * each })
    };
    Ok(match first {
        0x00..=0x7F | 0xE0..=0xFF | 0xC0 | 0xC2 | 0xC3 => leaf(1),
        0x80..=0x8F => Some(Item { bytes: 1, children: 2 * u64::from(first & 0x0F) }),
        0x90..=0x9F => Some(Item { bytes: 1, children: u64::from(first & 0x0F) }),
        0xA0..=0xBF => leaf(1 + usize::from(first & 0x1F)),
        0xC1 => return Err(ScanError::Reserved),
        0xC4 | 0xD9 => blob(1, 0),
        0xC5 | 0xDA => blob(2, 0),
        0xC6 | 0xDB => blob(4, 0),
        0xC7 => blob(1, 1),
        0xC8 => blob(2, 1),
        0xC9 => blob(4, 1),
        0xCC | 0xD0 => leaf(2),
        0xCD | 0xD1 => leaf(3),
        0xCA | 0xCE | 0xD2 => leaf(5),
        0xCB | 0xCF | 0xD3 => leaf(9),
        0xD4..=0xD8 => leaf(2 + (1 << (first - 0xD4))),
        0xDC => group(2, 1),
        0xDD => group(4, 1),
        0xDE => group(2, 2),
        0xDF => group(4, 2),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: MessageLimits = MessageLimits { bytes: 16 * 1024, depth: 8, items: 1024 };

    #[test]
    fn every_format_has_its_size() {
        let str32 = [&[0xDB, 0, 1, 0, 0][..], &[b'x'; 65_536]].concat();
        let wide = MessageLimits { bytes: 1 << 20, ..LIMITS };
        for bytes in [
            &[0x7F][..],
            &[0xE0],
            &[0xC0],
            &[0xC2],
            &[0xA3, b'a', b'b', b'c'],
            &[0xC4, 1, 9],
            &[0xC5, 0, 2, 9, 9],
            &[0xC6, 0, 0, 0, 1, 9],
            &[0xC7, 2, 5, 9, 9],
            &[0xC8, 0, 1, 5, 9],
            &[0xC9, 0, 0, 0, 1, 5, 9],
            &[0xCA, 1, 2, 3, 4],
            &[0xCB, 1, 2, 3, 4, 5, 6, 7, 8],
            &[0xCC, 1],
            &[0xCD, 1, 2],
            &[0xD2, 1, 2, 3, 4],
            &[0xD3, 1, 2, 3, 4, 5, 6, 7, 8],
            &[0xD4, 5, 1],
            &[0xD8, 5, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
            &[0xD9, 1, b'a'],
            &[0xDA, 0, 1, b'a'],
            &str32,
            &[0x90],
            &[0x80],
            &[0x92, 0xC0, 0x91, 0x01],
            &[0x82, 1, 2, 3, 0x91, 0x90],
            &[0xDC, 0, 1, 0],
            &[0xDD, 0, 0, 0, 1, 0],
            &[0xDE, 0, 1, 0, 0],
            &[0xDF, 0, 0, 0, 1, 0, 0],
        ] {
            let length = bytes.len();
            assert_eq!(scan(bytes, &wide), Ok(Scan::Complete(length)), "{:02X?}", &bytes[..1]);
            assert_eq!(scan(&[bytes, &[0xC1]].concat(), &wide), Ok(Scan::Complete(length)));
            for cut in (0..length).rev().take(40) {
                assert_eq!(scan(&bytes[..cut], &wide), Ok(Scan::NeedMore), "{cut}");
            }
        }
    }

    #[test]
    fn hostile_sizes_are_refused_before_they_arrive() {
        for (bytes, error) in [
            (&[0xDB, 0xFF, 0xFF, 0xFF, 0xFF][..], ScanError::TooLong),
            (&[0x91, 0xDA, 0xFF, 0xFF], ScanError::TooLong),
            (&[0xDD, 0xFF, 0xFF, 0xFF, 0xFF], ScanError::TooManyItems),
            (&[0xDF, 0xFF, 0xFF, 0xFF, 0xFF], ScanError::TooManyItems),
            (&[0x91; 9], ScanError::TooDeep),
            (&[0xC1], ScanError::Reserved),
        ] {
            assert_eq!(scan(bytes, &LIMITS), Err(error), "{bytes:02X?}");
        }
    }

    #[test]
    fn limits_are_the_largest_that_is_accepted() {
        let limits = MessageLimits { bytes: 4, depth: 2, items: 3 };
        assert_eq!(scan(&[0xA3, 1, 2, 3], &limits), Ok(Scan::Complete(4)));
        assert_eq!(scan(&[0xA4], &limits), Err(ScanError::TooLong));
        assert_eq!(scan(&[0x92, 0x91, 0], &limits), Ok(Scan::NeedMore));
        assert_eq!(scan(&[0x92, 0x91, 0, 0], &limits), Ok(Scan::Complete(4)));
        // Four bytes are the limit, and the object needs a fifth.
        assert_eq!(scan(&[0x93, 0, 0, 0xA0], &limits), Ok(Scan::Complete(4)));
        assert_eq!(scan(&[0x92, 0x91, 0, 0x91], &limits), Err(ScanError::TooManyItems));
        assert_eq!(scan(&[0x93, 0xA1, 0, 0], &limits), Err(ScanError::TooLong));
        assert_eq!(scan(&[0x91, 0x91, 0x91], &limits), Err(ScanError::TooDeep));
        let deep = MessageLimits { depth: usize::MAX, ..LIMITS };
        assert_eq!(scan(&[0x91; DEPTH_MAX + 1], &deep), Err(ScanError::TooDeep));
    }

    #[test]
    fn each_cause_has_its_own_text() {
        let texts = [ScanError::TooLong, ScanError::TooDeep, ScanError::TooManyItems]
            .map(|error| error.to_string());
        assert_eq!(texts[0], "the message is too long");
        assert_ne!(texts[1], texts[2]);
    }
}
