//! Where a MessagePack object ends: the stream has no length prefix.

/// Longest message accepted, bytes. The longest real one is `init` with its argument map.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024;
/// Deepest nesting accepted.
const DEPTH_MAX: usize = 8;
/// Most elements, of all containers of one message together.
const ITEMS_MAX: u64 = 1024;

/// Why a peer's bytes are no message; the connection cannot be resynchronised and must close.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The object does not end within [`MESSAGE_BYTES_MAX`].
    #[error("message is longer than {MESSAGE_BYTES_MAX} bytes")]
    TooLong,
    /// Containers nest deeper than is accepted.
    #[error("message nests deeper than {DEPTH_MAX} levels")]
    TooDeep,
    /// More elements than are accepted.
    #[error("message has more than {ITEMS_MAX} elements")]
    TooManyItems,
    /// The byte 0xC1, which MessagePack never uses.
    #[error("byte 0xC1 is no MessagePack")]
    Reserved,
}

/// The size of the first object in `bytes`; `None` when it has not arrived completely.
///
/// Allocates nothing and looks at no content, so that what is handed to a decoder afterwards is
/// known to be complete and small.
pub fn object_len(bytes: &[u8]) -> Result<Option<usize>, FrameError> {
    let mut open = [0u64; DEPTH_MAX];
    let mut depth = 0;
    let mut items = 0u64;
    let mut at = 0usize;
    loop {
        let Some(item) = item(bytes.get(at..).unwrap_or_default())? else {
            return if bytes.len() >= MESSAGE_BYTES_MAX {
                Err(FrameError::TooLong)
            } else {
                Ok(None)
            };
        };
        at = at.saturating_add(item.bytes);
        if at > MESSAGE_BYTES_MAX {
            return Err(FrameError::TooLong);
        }
        items += item.children;
        if items > ITEMS_MAX {
            return Err(FrameError::TooManyItems);
        }
        if item.children > 0 {
            *open.get_mut(depth).ok_or(FrameError::TooDeep)? = item.children;
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
            return Ok((at <= bytes.len()).then_some(at));
        }
    }
}

/// Bytes of an item without its children, and how many those are.
struct Item {
    bytes: usize,
    children: u64,
}

/// The item at the start of `bytes` (MessagePack specification, "Formats").
fn item(bytes: &[u8]) -> Result<Option<Item>, FrameError> {
    let Some((&first, rest)) = bytes.split_first() else { return Ok(None) };
    let length = |width: usize| {
        rest.get(..width).map(|field| field.iter().fold(0u64, |n, &byte| n << 8 | u64::from(byte)))
    };
    let leaf = |bytes: usize| Some(Item { bytes, children: 0 });
    let blob = |width: usize, extra: usize| {
        length(width)
            .map(|n| Item { bytes: (1 + width + extra).saturating_add(n as usize), children: 0 })
    };
    let group = |width: usize, each: u64| {
        length(width).map(|n| Item { bytes: 1 + width, children: n * each })
    };
    Ok(match first {
        0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => leaf(1),
        0x80..=0x8f => Some(Item { bytes: 1, children: 2 * u64::from(first & 0x0f) }),
        0x90..=0x9f => Some(Item { bytes: 1, children: u64::from(first & 0x0f) }),
        0xa0..=0xbf => leaf(1 + usize::from(first & 0x1f)),
        0xc1 => return Err(FrameError::Reserved),
        0xc4 | 0xd9 => blob(1, 0),
        0xc5 | 0xda => blob(2, 0),
        0xc6 | 0xdb => blob(4, 0),
        0xc7 => blob(1, 1),
        0xc8 => blob(2, 1),
        0xc9 => blob(4, 1),
        0xcc | 0xd0 => leaf(2),
        0xcd | 0xd1 => leaf(3),
        0xca | 0xce | 0xd2 => leaf(5),
        0xcb | 0xcf | 0xd3 => leaf(9),
        0xd4..=0xd8 => leaf(2 + (1 << (first - 0xd4))),
        0xdc => group(2, 1),
        0xdd => group(4, 1),
        0xde => group(2, 2),
        0xdf => group(4, 2),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rmpv::Value;

    fn encode(value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        rmpv::encode::write_value(&mut out, value).unwrap();
        out
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Nil),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[a-z]{0,300}".prop_map(Value::from),
            prop::collection::vec(any::<u8>(), 0..300).prop_map(Value::Binary),
            prop::collection::vec(any::<u8>(), 0..20).prop_map(|data| Value::Ext(7, data)),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..20).prop_map(Value::Array),
                prop::collection::vec((inner.clone(), inner), 0..5).prop_map(Value::Map),
            ]
        })
    }

    proptest! {
        #[test]
        fn an_object_ends_where_the_encoder_stopped(value in value(), tail in any::<[u8; 3]>()) {
            let mut bytes = encode(&value);
            prop_assume!(bytes.len() < MESSAGE_BYTES_MAX);
            let length = bytes.len();
            for cut in [0, length / 2, length - 1] {
                prop_assert_eq!(object_len(&bytes[..cut]), Ok(None));
            }
            bytes.extend(tail);
            prop_assert_eq!(object_len(&bytes), Ok(Some(length)));
        }

        #[test]
        fn any_bytes_give_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            if let Ok(Some(length)) = object_len(&bytes) {
                prop_assert!(length <= bytes.len());
                let mut rest = &bytes[..length];
                prop_assert!(rmpv::decode::read_value(&mut rest).is_ok());
                prop_assert!(rest.is_empty());
            }
        }
    }

    #[test]
    fn hostile_sizes_are_refused_before_they_arrive() {
        assert_eq!(object_len(&[0xdb, 0xff, 0xff, 0xff, 0xff]), Err(FrameError::TooLong));
        assert_eq!(object_len(&[0xdd, 0xff, 0xff, 0xff, 0xff]), Err(FrameError::TooManyItems));
        assert_eq!(object_len(&[0xdf, 0xff, 0xff, 0xff, 0xff]), Err(FrameError::TooManyItems));
        assert_eq!(object_len(&[0x91; 20]), Err(FrameError::TooDeep));
        assert_eq!(object_len(&[0xc1]), Err(FrameError::Reserved));
        assert_eq!(object_len(&[0x91, 0xda, 0xff, 0xff]), Err(FrameError::TooLong));
    }
}
