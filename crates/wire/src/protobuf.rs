//! The fields of a message in the wire format of Protocol Buffers (proto3), in which gRPC carries
//! MPM's calls from UHD 4.11 on. What a field's number means is not known here.
//!
//! ```
//! use millstream_wire::protobuf::{ProtoValue, fields};
//!
//! // Field 1 is 300, field 2 is "ab".
//! let mut fields = fields(&[0x08, 0xAC, 0x02, 0x12, 2, b'a', b'b']);
//! assert_eq!(fields.next(), Some(Ok((1, ProtoValue::Varint(300)))));
//! assert_eq!(fields.next(), Some(Ok((2, ProtoValue::Bytes(b"ab")))));
//! assert_eq!(fields.next(), None);
//! ```

/// The content of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtoValue<'a> {
    /// A truth value or an integer; negative ones are sign-extended to 64 bits.
    Varint(u64),
    /// The bits of a double.
    Fixed64(u64),
    /// The bits of a float.
    Fixed32(u32),
    /// A text, bytes, a message, or a packed list of numbers.
    Bytes(&'a [u8]),
}

/// Bytes that are not a message: a field that is cut off, has number 0 or a kind that proto3 does
/// not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProtoError;

impl core::fmt::Display for ProtoError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the bytes are not a message of Protocol Buffers")
    }
}

impl core::error::Error for ProtoError {}

/// Iterates over the fields of a message; created by [`fields`].
#[derive(Debug, Clone)]
pub struct ProtoFields<'a> {
    rest: &'a [u8],
}

/// Returns the fields of `message`, each with its number, in the order of their bytes. Nothing
/// follows an error.
pub fn fields(message: &[u8]) -> ProtoFields<'_> {
    ProtoFields { rest: message }
}

impl<'a> Iterator for ProtoFields<'a> {
    type Item = Result<(u32, ProtoValue<'a>), ProtoError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.take();
        if field.is_none() {
            self.rest = &[];
        }
        Some(field.ok_or(ProtoError))
    }
}

impl<'a> ProtoFields<'a> {
    fn take(&mut self) -> Option<(u32, ProtoValue<'a>)> {
        let tag = u32::try_from(varint(&mut self.rest)?).ok()?;
        let value = match tag & 7 {
            0 => ProtoValue::Varint(varint(&mut self.rest)?),
            1 => ProtoValue::Fixed64(fixed64(&mut self.rest)?),
            2 => {
                let length = usize::try_from(varint(&mut self.rest)?).ok()?;
                let (bytes, rest) = self.rest.split_at_checked(length)?;
                self.rest = rest;
                ProtoValue::Bytes(bytes)
            }
            5 => {
                let (bits, rest) = self.rest.split_first_chunk()?;
                self.rest = rest;
                ProtoValue::Fixed32(u32::from_le_bytes(*bits))
            }
            _ => return None,
        };
        (tag >> 3 != 0).then_some((tag >> 3, value))
    }
}

/// Takes the integer at the start of `bytes`: 7 bits a byte, the lowest first; `None` when it is
/// cut off or has more than 64 bits.
pub fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if shift == 63 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Takes the 8 bytes at the start of `bytes`; `None` when there are fewer.
pub fn fixed64(bytes: &mut &[u8]) -> Option<u64> {
    let (bits, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_field_is_read() {
        // 1: 300; 2: "testing"; 3: 1.0; 4: 1.0f; 5: -1 (Protocol Buffers, "Encoding").
        let bytes = [
            &[0x08, 0xAC, 0x02, 0x12, 7][..],
            b"testing",
            &[0x19, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F, 0x25, 0, 0, 0x80, 0x3F, 0x28],
            &[0xFF; 9],
            &[1],
        ]
        .concat();
        let all: Result<Vec<_>, _> = fields(&bytes).collect();
        let want = vec![
            (1, ProtoValue::Varint(300)),
            (2, ProtoValue::Bytes(b"testing")),
            (3, ProtoValue::Fixed64(1f64.to_bits())),
            (4, ProtoValue::Fixed32(1f32.to_bits())),
            (5, ProtoValue::Varint(u64::MAX)),
        ];
        assert_eq!(all, Ok(want));
    }

    #[test]
    fn what_is_no_field_ends_the_message_with_one_error() {
        for bytes in [
            // Number 0, a group, kinds 6 and 7.
            &[0x00, 1][..],
            &[0x0B, 1],
            &[0x0E, 1],
            &[0x0F, 1],
            // Cut off.
            &[0x08],
            &[0x08, 0x80],
            &[0x09, 1, 2, 3],
            &[0x0D, 1, 2, 3],
            &[0x0A, 3, 1, 2],
            &[0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 2],
            // Integers of more than 64 bits, and a number of more than 29.
            &[0x08, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2],
            &[0xF8, 0xFF, 0xFF, 0xFF, 0xFF, 1, 1],
        ] {
            let all: Vec<_> = fields(bytes).collect();
            assert_eq!(all, [Err(ProtoError)], "{bytes:02X?}");
        }
    }
}
