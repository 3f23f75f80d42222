//! Packets that contain their number, for tests and measurements.

use crate::params::PACKET_BYTES;
use millstream_dsp::noise::Noise;

/// The endless stream of packets of a seed: null packets that contain their number and random
/// bytes.
///
/// Every packet is unique and can be computed again from its number, so a receiver's output can be
/// checked without a copy of the sent stream.
#[derive(Clone, Debug)]
pub struct Numbered {
    seed: u64,
    next: u64,
}

impl Numbered {
    /// Creates the stream of a seed, from packet 0 on.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, next: 0 }
    }

    /// Returns the number of packets put out.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.next
    }

    /// Writes the next packet.
    pub fn next_packet(&mut self, packet: &mut [u8; PACKET_BYTES]) {
        *packet = self.packet(self.next);
        self.next += 1;
    }

    /// Returns packet `number` of the stream.
    #[must_use]
    pub fn packet(&self, number: u64) -> [u8; PACKET_BYTES] {
        let mut random = Noise::new(self.seed ^ number.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        let mut packet = [0; PACKET_BYTES];
        for bytes in packet.chunks_mut(8) {
            bytes.copy_from_slice(&random.bits().to_be_bytes()[..bytes.len()]);
        }
        packet[..4].copy_from_slice(&[0x47, 0x1F, 0xFF, 0x10]);
        packet[4..12].copy_from_slice(&number.to_be_bytes());
        packet
    }

    /// Returns the number of a packet of this stream; `None` if a single bit differs.
    #[must_use]
    pub fn number(&self, packet: &[u8; PACKET_BYTES]) -> Option<u64> {
        let number = u64::from_be_bytes(packet[4..12].try_into().expect("eight bytes"));
        (*packet == self.packet(number)).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_known_by_its_number_unless_a_bit_differs() {
        let mut stream = Numbered::new(5);
        let mut packet = [0; PACKET_BYTES];
        for number in 0..100 {
            stream.next_packet(&mut packet);
            assert_eq!(stream.number(&packet), Some(number));
            assert_eq!(Numbered::new(6).number(&packet), None);
            packet[number as usize + 80] ^= 1;
            assert_eq!(stream.number(&packet), None);
        }
        assert_eq!(stream.count(), 100);
    }
}
