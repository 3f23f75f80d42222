//! The Reed-Solomon code (207, 187), ten correctable bytes (A/53 Part 2, clause 5.3).
//!
//! Systematic over GF(256); the generator's roots are alpha^0 to alpha^19.

mod check;
mod decode;
mod remainder;

pub use decode::{Uncorrectable, decode};

use crate::params::{CODEWORD_BYTES, PAYLOAD_BYTES};
use remainder::remainder;

/// Bytes that the decoder can correct.
pub const CORRECTABLE_BYTES: usize = 10;

/// Appends the parity to a payload.
#[must_use]
pub fn encode(payload: &[u8; PAYLOAD_BYTES]) -> [u8; CODEWORD_BYTES] {
    let mut codeword = [0; CODEWORD_BYTES];
    codeword[..PAYLOAD_BYTES].copy_from_slice(payload);
    codeword[PAYLOAD_BYTES..].copy_from_slice(&remainder(payload));
    codeword
}

#[cfg(test)]
mod tests;
