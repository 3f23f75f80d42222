//! The CHDR width.

/// The CHDR width W: the bits of a packet that a device moves at once.
///
/// It is a property of the device image, known from RPC; data packets do not contain it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Width {
    /// 64 bits: E3xx, N3xx, X3x0, and X4xx up to 200 MHz.
    #[default]
    W64,
    /// 128 bits: X410, 400 MHz variant.
    W128,
    /// 256 bits.
    W256,
    /// 512 bits: X410, 400 MHz variant.
    W512,
}

impl Width {
    /// All widths, ascending.
    pub const ALL: [Width; 4] = [Width::W64, Width::W128, Width::W256, Width::W512];

    /// Returns the width in bits.
    #[must_use]
    pub const fn bits(self) -> usize {
        64 << self.code()
    }

    /// Returns the width in bytes.
    #[must_use]
    #[inline]
    pub const fn bytes(self) -> usize {
        8 << self.code()
    }

    /// Returns the 3-bit code of management packets: 0, 1, 2, 3 for 64, 128, 256, 512 bits.
    #[must_use]
    #[inline]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the width with this number of bits, as in the device's RPC.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Option<Width> {
        match bits {
            64 => Some(Width::W64),
            128 => Some(Width::W128),
            256 => Some(Width::W256),
            512 => Some(Width::W512),
            _ => None,
        }
    }
}

impl core::fmt::Display for Width {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}", self.bits())
    }
}

/// Returns `len` rounded up to whole CHDR words: a packet's length in flow control.
#[must_use]
#[inline]
pub const fn round_to_word(len: usize, width: Width) -> usize {
    len.next_multiple_of(width.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_bytes_and_codes_agree() {
        for (code, width) in Width::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(width.code()), code);
            assert_eq!(width.bits(), width.bytes() * 8);
            assert_eq!(Width::from_bits(width.bits() as u64), Some(width));
        }
        assert_eq!(Width::W512.bits(), 512);
        assert_eq!(Width::from_bits(65), None);
    }

    #[test]
    fn rounding_goes_up_to_whole_words() {
        assert_eq!(round_to_word(0, Width::W64), 0);
        assert_eq!(round_to_word(12, Width::W64), 16);
        assert_eq!(round_to_word(16, Width::W64), 16);
        assert_eq!(round_to_word(17, Width::W128), 32);
        assert_eq!(round_to_word(65, Width::W512), 128);
    }
}
