//! How a call ended: gRPC's status codes and texts.

/// A status of gRPC other than "OK". Source: gRPC, "Status codes and their use".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrpcCode {
    /// An argument is wrong.
    InvalidArgument,
    /// There is no such method.
    Unimplemented,
    /// The method failed.
    Internal,
    /// The token is not that of the current claim.
    Unauthenticated,
}

impl GrpcCode {
    /// Returns the number that travels.
    pub fn number(self) -> u32 {
        match self {
            Self::InvalidArgument => 3,
            Self::Unimplemented => 12,
            Self::Internal => 13,
            Self::Unauthenticated => 16,
        }
    }
}

/// The end of a call that failed, as a server sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrpcStatus {
    /// What kind of fault.
    pub code: GrpcCode,
    /// The text for people.
    pub message: String,
}

impl GrpcStatus {
    /// A call of a method that there is not.
    pub fn no_method() -> Self {
        Self { code: GrpcCode::Unimplemented, message: "Method not found!".to_owned() }
    }

    /// A request that cannot be decoded.
    pub fn undecodable() -> Self {
        Self { code: GrpcCode::Internal, message: "Exception deserializing request!".to_owned() }
    }
}

/// Returns a text for a header: bytes outside of printable ASCII, and `%`, as `%XX`.
pub(crate) fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'%' => encoded.push_str("%25"),
            b' '..=b'~' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Does the reverse; a `%` without two digits stands for itself.
pub(crate) fn percent_decoded(text: &[u8]) -> String {
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match (byte, digit(text.get(at + 1)), digit(text.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high << 4 | low) as u8);
                at += 3;
            }
            _ => {
                bytes.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_back_from_a_header() {
        for text in ["", "Invalid db_idx: 1", "50 %", "Ω\n\u{7f}"] {
            let encoded = percent_encoded(text);
            assert!(encoded.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{encoded}");
            assert_eq!(percent_decoded(encoded.as_bytes()), text);
        }
        assert_eq!(percent_decoded(b"100 %, %4, %zz, %41"), "100 %, %4, %zz, A");
    }
}
