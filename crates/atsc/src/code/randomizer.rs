//! The data randomiser (A/53 Part 2, clause 5.2).

use crate::params::{FIELD_DATA_SEGMENTS, PAYLOAD_BYTES};
use std::sync::LazyLock;

/// The register at each field sync, bit 15 being stage X^16.
const PRESET: u16 = 0xF180;

/// Stages to which the output of X^16 is added when it moves to X: x^16 + x^13 + x^12 + x^11 + x^7
/// + x^6 + x^3 + x + 1.
const FEEDBACK: u16 = 0x38CB;

/// Register bits that form the output byte, from bit 0 up: X, X^3, X^4, X^7, X^11 to X^14.
const OUTPUT_BITS: [u16; 8] = [0, 2, 3, 6, 10, 11, 12, 13];

/// The sequence for one field, in order of transmission.
static SEQUENCE: LazyLock<Vec<[u8; PAYLOAD_BYTES]>> = LazyLock::new(|| {
    let mut register = PRESET;
    let mut next = || {
        let pick = |(i, bit): (usize, &u16)| ((register >> bit & 1) as u8) << i;
        let byte = OUTPUT_BITS.iter().enumerate().map(pick).sum();
        let feedback = if register & 0x8000 != 0 { FEEDBACK } else { 0 };
        register = (register << 1) ^ feedback;
        byte
    };
    (0..FIELD_DATA_SEGMENTS).map(|_| std::array::from_fn(|_| next())).collect()
});

/// Randomises, or restores, the payload of data segment `segment` of a field.
///
/// # Panics
/// If `segment` is not below [`FIELD_DATA_SEGMENTS`].
pub fn apply(segment: usize, payload: &mut [u8; PAYLOAD_BYTES]) {
    for (byte, mask) in payload.iter_mut().zip(&SEQUENCE[segment]) {
        *byte ^= mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_starts_as_the_register_preset_implies() {
        // X^16, X^15, X^14, X^13, X^9 and X^8 are set: D7 = X^14 and D6 = X^13.
        assert_eq!(SEQUENCE[0][..4], [0xC0, 0x6D, 0x3F, 0x99]);
    }

    #[test]
    fn applying_twice_restores_the_payload() {
        let original: [u8; PAYLOAD_BYTES] = std::array::from_fn(|i| i as u8);
        let mut payload = original;
        apply(311, &mut payload);
        assert_ne!(payload, original);
        apply(311, &mut payload);
        assert_eq!(payload, original);
    }
}
