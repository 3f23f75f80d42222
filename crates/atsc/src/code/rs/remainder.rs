//! Division by the generator polynomial, four bytes at a time. A table gives the contribution of
//! the first byte to the register three bytes later, so the lookups do not depend on each other.

use crate::code::galois;
use crate::params::{PARITY_BYTES, PAYLOAD_BYTES};
use millstream_dsp::chunks::Chunks;

/// The shift register as three words, first parity byte in the top byte of the first.
type Words = [u64; 3];

/// Bytes processed together.
const BYTES: usize = 4;

/// The contribution of every feedback byte to the register after zero to three more bytes.
static FEEDBACK: [[Words; 256]; BYTES] = feedback_tables();

/// Returns the generator without its leading one, highest power first.
const fn generator() -> [u8; PARITY_BYTES] {
    // Lowest power first, growing by one root at a time.
    let mut poly = [0u8; PARITY_BYTES + 1];
    poly[0] = 1;
    let mut root = 0;
    while root < PARITY_BYTES {
        let mut i = root + 1;
        while i > 0 {
            poly[i] = poly[i - 1] ^ galois::mul(poly[i], galois::exp(root));
            i -= 1;
        }
        poly[0] = galois::mul(poly[0], galois::exp(root));
        root += 1;
    }
    let mut highest_first = [0; PARITY_BYTES];
    let mut i = 0;
    while i < PARITY_BYTES {
        highest_first[i] = poly[PARITY_BYTES - 1 - i];
        i += 1;
    }
    highest_first
}

const fn feedback_table() -> [Words; 256] {
    let generator = generator();
    let mut table = [[0; 3]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut i = 0;
        while i < PARITY_BYTES {
            let product = galois::mul(byte as u8, generator[i]) as u64;
            table[byte][i / 8] |= product << (56 - 8 * (i % 8));
            i += 1;
        }
        byte += 1;
    }
    table
}

const fn feedback_tables() -> [[Words; 256]; BYTES] {
    let first = feedback_table();
    let mut tables = [first; BYTES];
    let mut later = 1;
    while later < BYTES {
        let mut byte = 0;
        while byte < 256 {
            tables[later][byte] = next_byte(&first, tables[later - 1][byte], 0);
            byte += 1;
        }
        later += 1;
    }
    tables
}

/// Returns the register after one more byte.
const fn next_byte(table: &[Words; 256], [high, middle, low]: Words, byte: u8) -> Words {
    let add = table[(byte ^ (high >> 56) as u8) as usize];
    [(high << 8 | middle >> 56) ^ add[0], (middle << 8 | low >> 56) ^ add[1], (low << 8) ^ add[2]]
}

/// Returns the register after four more bytes.
#[inline(always)]
fn next_four([high, middle, low]: Words, four: [u8; BYTES]) -> Words {
    let bytes = (u32::from_be_bytes(four) ^ (high >> 32) as u32).to_be_bytes();
    let mut next = [high << 32 | middle >> 32, middle << 32 | low >> 32, low << 32];
    for (byte, table) in bytes.iter().zip(FEEDBACK.iter().rev()) {
        let add = &table[*byte as usize];
        next.iter_mut().zip(add).for_each(|(word, add)| *word ^= add);
    }
    next
}

/// Returns the remainder of `payload * x^20` divided by the generator: the parity.
#[inline]
#[must_use]
pub fn remainder(payload: &[u8; PAYLOAD_BYTES]) -> [u8; PARITY_BYTES] {
    let (first, fours) = payload.in_rchunks::<BYTES>();
    let start = first.iter().fold([0; 3], |words, byte| next_byte(&FEEDBACK[0], words, *byte));
    let [high, middle, low] = fours.iter().fold(start, |words, four| next_four(words, *four));
    let mut parity = [0; PARITY_BYTES];
    parity[..8].copy_from_slice(&high.to_be_bytes());
    parity[8..16].copy_from_slice(&middle.to_be_bytes());
    parity[16..].copy_from_slice(&low.to_be_bytes()[..4]);
    parity
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_bytes_at_a_time_are_one_byte_four_times() {
        let mut words = [0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210, 0x1357_9BDF_0000_0000];
        let mut byte = 1u8;
        for _ in 0..1000 {
            let four: [u8; BYTES] = std::array::from_fn(|_| {
                byte = byte.wrapping_mul(29).wrapping_add(71);
                byte
            });
            let one_by_one = four.iter().fold(words, |w, byte| next_byte(&FEEDBACK[0], w, *byte));
            words = next_four(words, four);
            assert_eq!(words, one_by_one);
        }
    }
}
