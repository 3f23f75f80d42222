//! Division by the generator polynomial, a byte at a time.

use crate::code::galois;
use crate::params::{PARITY_BYTES, PAYLOAD_BYTES};

/// The shift register as three words, first parity byte in the top byte of the first.
type Words = [u64; 3];

/// For every feedback byte, what it adds to the register.
static FEEDBACK: [Words; 256] = feedback_table();

/// The generator without its leading one, highest power first.
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

/// The remainder of `payload * x^20` divided by the generator: the parity.
#[inline]
#[must_use]
pub fn remainder(payload: &[u8; PAYLOAD_BYTES]) -> [u8; PARITY_BYTES] {
    let [mut high, mut middle, mut low]: Words = [0; 3];
    for byte in payload {
        let add = &FEEDBACK[(*byte ^ (high >> 56) as u8) as usize];
        high = (high << 8 | middle >> 56) ^ add[0];
        middle = (middle << 8 | low >> 56) ^ add[1];
        low = (low << 8) ^ add[2];
    }
    let mut parity = [0; PARITY_BYTES];
    parity[..8].copy_from_slice(&high.to_be_bytes());
    parity[8..16].copy_from_slice(&middle.to_be_bytes());
    parity[16..].copy_from_slice(&low.to_be_bytes()[..4]);
    parity
}
