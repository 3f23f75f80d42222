//! The checksum of the Internet protocols: the ones' complement of the ones' complement sum (RFC
//! 1071).

use core::net::Ipv4Addr;

/// A ones' complement sum over bytes in several pieces.
///
/// Sums in the machine's byte order (RFC 1071, section 2(B)) and in 64 bits, so that a compiler can
/// use vectors and no carry is lost: 2³² words fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    words: u64,
    /// An odd number of bytes was added: the next byte is the second half of a word.
    odd: bool,
}

/// The number of 32-bit words that are added in parallel.
const LANES: usize = 16;

impl Sum {
    /// Returns an empty sum.
    #[must_use]
    pub const fn new() -> Sum {
        Sum { words: 0, odd: false }
    }

    /// Adds bytes.
    #[must_use]
    #[inline]
    pub fn bytes(self, bytes: &[u8]) -> Sum {
        let sum = sum_of(bytes);
        // A piece that begins in the middle of a word has its bytes swapped (RFC 1071, 2(B)).
        let sum = if self.odd { u64::from(fold(sum).swap_bytes()) } else { sum };
        let words = self.words + u64::from(fold(sum));
        Sum { words, odd: self.odd ^ (bytes.len() % 2 != 0) }
    }

    /// Adds a 16-bit word.
    ///
    /// # Panics
    /// In debug builds, after an odd number of bytes.
    #[must_use]
    #[inline]
    pub fn word(self, word: u16) -> Sum {
        debug_assert!(!self.odd, "a word after half a word");
        Sum { words: self.words + u64::from(word.to_be()), odd: self.odd }
    }

    /// Adds an IPv4 address.
    #[must_use]
    #[inline]
    pub fn address(self, address: Ipv4Addr) -> Sum {
        let [a, b, c, d] = address.octets();
        self.word(u16::from_be_bytes([a, b])).word(u16::from_be_bytes([c, d]))
    }

    /// Adds the UDP pseudo-header (RFC 768); `length` is that of the UDP header and its data.
    #[must_use]
    #[inline]
    pub fn udp_pseudo_header(self, from: Ipv4Addr, to: Ipv4Addr, length: u16) -> Sum {
        self.address(from).address(to).word(u16::from(crate::ipv4::protocol::UDP)).word(length)
    }

    /// Returns the sum folded to 16 bits, as in a partial checksum.
    #[must_use]
    #[inline]
    pub fn folded(self) -> u16 {
        u16::from_be(fold(self.words))
    }

    /// Returns the checksum: the complement of the sum.
    #[must_use]
    #[inline]
    pub fn checksum(self) -> u16 {
        !self.folded()
    }

    /// Returns the checksum for UDP, with 0xFFFF in place of 0, which means "none" (RFC 768).
    #[must_use]
    #[inline]
    pub fn udp_checksum(self) -> u16 {
        match self.checksum() {
            0 => 0xFFFF,
            checksum => checksum,
        }
    }

    /// Returns whether bytes that include their checksum are intact.
    #[must_use]
    #[inline]
    pub fn is_whole(self) -> bool {
        self.folded() == 0xFFFF
    }
}

#[inline]
fn sum_of(bytes: &[u8]) -> u64 {
    let mut lanes = [0u64; LANES];
    let mut blocks = bytes.chunks_exact(4 * LANES);
    for block in &mut blocks {
        for (lane, word) in lanes.iter_mut().zip(block.chunks_exact(4)) {
            *lane += u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
        }
    }
    let mut sum = lanes.iter().sum();
    let mut words = blocks.remainder().chunks_exact(2);
    for word in &mut words {
        sum += u64::from(u16::from_ne_bytes([word[0], word[1]]));
    }
    if let [last] = *words.remainder() {
        sum += u64::from(u16::from_ne_bytes([last, 0]));
    }
    sum
}

/// Returns the sum in 16 bits; carries are added at the bottom.
#[inline]
const fn fold(sum: u64) -> u16 {
    let sum = (sum >> 32) + (sum & 0xFFFF_FFFF);
    let sum = (sum >> 16) + (sum & 0xFFFF);
    let sum = (sum >> 16) + (sum & 0xFFFF);
    ((sum >> 16) + (sum & 0xFFFF)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071, word by word.
    fn plain(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
            sum = (sum >> 16) + (sum & 0xFFFF);
        }
        sum as u16
    }

    #[test]
    fn the_example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7];
        assert_eq!(Sum::new().bytes(&bytes).folded(), 0xDDF2);
        assert_eq!(Sum::new().bytes(&bytes).checksum(), !0xDDF2);
    }

    #[test]
    fn no_carry_is_lost_in_the_longest_datagram() {
        let ones = [0xFF; 65535];
        assert_eq!(Sum::new().bytes(&ones).folded(), plain(&ones));
        let many = (0..70_000).fold(Sum::new(), |sum, _| sum.word(0xFFFF));
        assert!(many.is_whole());
    }

    #[test]
    fn udp_never_sends_zero() {
        assert_eq!(Sum::new().word(0xFFFF).checksum(), 0);
        assert_eq!(Sum::new().word(0xFFFF).udp_checksum(), 0xFFFF);
        assert_eq!(Sum::new().word(1).udp_checksum(), 0xFFFE);
    }

    proptest! {
        #[test]
        fn pieces_add_up_to_the_whole(
            bytes in proptest::collection::vec(any::<u8>(), 0..600),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..4),
        ) {
            let mut at: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let pieces = at.windows(2).map(|ends| &bytes[ends[0]..ends[1]]);
            let sum = pieces.fold(Sum::new(), Sum::bytes);
            prop_assert_eq!(sum.folded(), plain(&bytes));
        }
    }
}
