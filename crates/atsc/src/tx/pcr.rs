//! Time stamps in transport stream packets (ISO/IEC 13818-1, clauses 2.4.3.4 and 2.4.3.6).

use crate::params::PACKET_BYTES;

/// Ticks per second of the system clock.
pub const CLOCK_HZ: f64 = 27.0e6;

/// Ticks after which a clock reference wraps: 2^33 * 300.
pub const PCR_WRAP: u64 = (1 << 33) * 300;

/// The packet identifier of null packets.
pub const NULL_PID: u16 = 0x1FFF;

/// Returns the packet identifier.
#[must_use]
pub fn pid(packet: &[u8; PACKET_BYTES]) -> u16 {
    u16::from_be_bytes([packet[1], packet[2]]) & 0x1FFF
}

/// Returns whether the packet has a payload.
#[must_use]
pub fn has_payload(packet: &[u8; PACKET_BYTES]) -> bool {
    packet[3] & 0x10 != 0
}

/// Returns the start of the payload, if there is one within the packet.
#[must_use]
pub fn payload_start(packet: &[u8; PACKET_BYTES]) -> Option<usize> {
    let start = if packet[3] & 0x20 != 0 { 5 + packet[4] as usize } else { 4 };
    (has_payload(packet) && start < PACKET_BYTES).then_some(start)
}

/// Returns the positions of the clock references: the program's, and the original program's.
fn references(packet: &[u8; PACKET_BYTES]) -> [Option<usize>; 2] {
    let field = packet[4] as usize;
    if packet[3] & 0x20 == 0 || field == 0 || field > PACKET_BYTES - 5 {
        return [None; 2];
    }
    let (has_pcr, has_opcr) = (packet[5] & 0x10 != 0, packet[5] & 0x08 != 0);
    let pcr = (has_pcr && field >= 7).then_some(6);
    let opcr_at = if has_pcr { 12 } else { 6 };
    let opcr = (has_opcr && field > opcr_at).then_some(opcr_at);
    [pcr, opcr]
}

fn read_reference(bytes: &[u8]) -> u64 {
    let raw = bytes[..6].iter().fold(0, |acc, b| acc << 8 | u64::from(*b));
    (raw >> 15) * 300 + (raw & 0x1FF)
}

fn write_reference(bytes: &mut [u8], ticks: u64) {
    let ticks = ticks % PCR_WRAP;
    let raw = (ticks / 300) << 15 | 0x3F << 9 | (ticks % 300);
    bytes[..6].copy_from_slice(&raw.to_be_bytes()[2..]);
}

/// Returns the program clock reference, in ticks.
#[must_use]
pub fn read(packet: &[u8; PACKET_BYTES]) -> Option<u64> {
    references(packet)[0].map(|at| read_reference(&packet[at..]))
}

/// Adds to the clock references of a packet, if it has any: `moved` ticks (the delay of the packet
/// relative to its intended time) to the program's, and `offset` ticks (repetitions) to both.
pub fn shift(packet: &mut [u8; PACKET_BYTES], moved: u64, offset: u64) {
    if moved == 0 && offset == 0 {
        return;
    }
    for (at, ticks) in references(packet).into_iter().zip([moved + offset, offset]) {
        if let Some(at) = at {
            let shifted = read_reference(&packet[at..]) + ticks % PCR_WRAP;
            write_reference(&mut packet[at..], shifted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_pcr(ticks: u64) -> [u8; PACKET_BYTES] {
        let mut packet = [0xFF; PACKET_BYTES];
        packet[..6].copy_from_slice(&[0x47, 0x01, 0x00, 0x30, 7, 0x10]);
        write_reference(&mut packet[6..], ticks);
        packet
    }

    #[test]
    fn a_reference_is_read_as_written_and_its_reserved_bits_are_set() {
        for ticks in [0, 299, 300, 123_456_789_012, PCR_WRAP - 1] {
            let packet = with_pcr(ticks);
            assert_eq!(read(&packet), Some(ticks));
            assert_eq!(packet[10] & 0x7E, 0x7E);
        }
    }

    #[test]
    fn shifting_wraps() {
        let mut packet = with_pcr(PCR_WRAP - 10);
        shift(&mut packet, 7, 5);
        assert_eq!(read(&packet), Some(2));
    }

    #[test]
    fn packets_without_room_for_a_reference_are_left_alone() {
        for length in [0, 1, 6, 184, 255] {
            let mut packet = with_pcr(5);
            packet[4] = length;
            let before = packet;
            let expected = (7..=183).contains(&length).then_some(5);
            assert_eq!(read(&packet), expected);
            shift(&mut packet, 0, 300);
            assert_eq!(packet != before, expected.is_some());
        }
    }
}
