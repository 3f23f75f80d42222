//! The serial bus in the radio blocks of N3xx and X3x0 devices.

use super::radio::FRONT_END_BASE;

/// Clock divider.
pub const DIVIDER: u32 = FRONT_END_BASE + 0x540;
/// `[23:0]` slaves, a bit each; `[29:24]` bits of a word; 30 and 31 edges.
pub const CONTROL: u32 = FRONT_END_BASE + 0x548;
/// The word, from bit 31 on; writing it starts the transfer.
pub const DATA: u32 = FRONT_END_BASE + 0x550;
/// The bits that came back in the latest transfer.
pub const READ_BACK: u32 = FRONT_END_BASE + 0x88;

/// The most bits of a word.
pub const WORD_BITS_MAX: u32 = 32;

/// Returns the content of [`CONTROL`] for words of `bits` bits to these slaves, valid at rising
/// edges in both directions.
#[must_use]
pub const fn control(slaves: u32, bits: u32) -> u32 {
    slaves & 0xFF_FFFF | (bits & 63) << 24 | 3 << 30
}

/// Returns the slaves and the number of bits in a content of [`CONTROL`].
#[must_use]
pub const fn parts(control: u32) -> (u32, u32) {
    (control & 0xFF_FFFF, control >> 24 & 63)
}

/// Returns the content of [`DATA`] for a word of `bits` bits, at most 32.
#[must_use]
pub const fn data(word: u32, bits: u32) -> u32 {
    match bits {
        0 => 0,
        bits => word << (WORD_BITS_MAX - bits),
    }
}

/// Returns the word of `bits` bits in a content of [`DATA`].
#[must_use]
pub const fn word(data: u32, bits: u32) -> u32 {
    match bits {
        0 => 0,
        bits if bits >= WORD_BITS_MAX => data,
        bits => data >> (WORD_BITS_MAX - bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_left_aligned() {
        assert_eq!(control(8, 24), 0xD800_0008);
        assert_eq!(parts(control(8, 24)), (8, 24));
        for (value, bits) in [(0x12_3456, 24), (0xDEAD_BEEF, 32), (1, 1)] {
            assert_eq!(word(data(value, bits), bits), value);
        }
        assert_eq!((data(0x12_3456, 24), word(0xFFFF_FFFF, 0), word(7, 63)), (0x1234_5600, 0, 7));
    }
}
