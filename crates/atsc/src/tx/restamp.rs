//! Repetitions of a transport stream as one continuous stream.

use super::pcr;
use crate::params::PACKET_BYTES;

/// Ticks of 90 kHz after which time stamps wrap.
const STAMP_WRAP: u64 = 1 << 33;

/// Packet identifiers.
const PIDS: usize = 8192;

/// Rewrites continuity counters and time stamps from one repetition to the next.
#[derive(Clone, Debug)]
pub struct Restamper {
    /// Ticks of 27 MHz added to every stamp in this repetition.
    offset: u64,
    repetition: u64,
    /// For each packet identifier: the last counter sent, and the amount added in this repetition.
    counters: Vec<Counter>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    last: Option<u8>,
    add: u8,
    repetition: u64,
}

impl Restamper {
    /// Creates the state of the first repetition, which is left unchanged.
    #[must_use]
    pub fn new() -> Self {
        Self { offset: 0, repetition: 0, counters: vec![Counter::default(); PIDS] }
    }

    /// Starts the next repetition, `duration` ticks of 27 MHz after the last one started.
    pub fn repeat(&mut self, duration: u64) {
        self.repetition += 1;
        self.offset = (self.offset + duration) % pcr::PCR_WRAP;
    }

    /// Rewrites a packet that is sent `moved` ticks later than its own clock requires.
    pub fn apply(&mut self, packet: &mut [u8; PACKET_BYTES], moved: u64) {
        let pid = pcr::pid(packet);
        if pid == pcr::NULL_PID {
            return;
        }
        pcr::shift(packet, moved, self.offset);
        self.renumber(pid, packet);
        if self.repetition > 0 {
            shift_stamps(packet, self.offset / 300);
        }
    }

    fn renumber(&mut self, pid: u16, packet: &mut [u8; PACKET_BYTES]) {
        let counter = &mut self.counters[pid as usize];
        let own = packet[3] & 0x0F;
        if counter.repetition != self.repetition {
            counter.repetition = self.repetition;
            // The counter advances only with packets that have a payload.
            let wanted = counter.last.map_or(own, |last| last + u8::from(pcr::has_payload(packet)));
            counter.add = wanted.wrapping_sub(own) & 0x0F;
        }
        let number = (own + counter.add) & 0x0F;
        counter.last = Some(number);
        packet[3] = packet[3] & 0xF0 | number;
    }
}

impl Default for Restamper {
    fn default() -> Self {
        Self::new()
    }
}

/// Adds to the presentation and decoding time stamps of a PES header that starts in this packet
/// (ISO/IEC 13818-1, clause 2.4.3.6).
fn shift_stamps(packet: &mut [u8; PACKET_BYTES], ticks: u64) {
    let scrambled = packet[3] & 0xC0 != 0;
    let unit_start = packet[1] & 0x40 != 0;
    let Some(start) = pcr::payload_start(packet).filter(|_| unit_start && !scrambled) else {
        return;
    };
    let pes = &mut packet[start..];
    if pes.len() < 9 || pes[..3] != [0, 0, 1] || !has_stamps(pes[3]) || pes[6] & 0xC0 != 0x80 {
        return;
    }
    let count = [0, 0, 1, 2][(pes[7] >> 6) as usize];
    for at in (0..count).map(|i| 9 + 5 * i) {
        if let Some(stamp) = pes.get_mut(at..at + 5) {
            let shifted = read_stamp(stamp) + ticks;
            write_stamp(stamp, shifted);
        }
    }
}

/// Returns whether packets of a stream identifier have the optional PES header.
fn has_stamps(stream_id: u8) -> bool {
    !matches!(stream_id, 0..=0xBC | 0xBE | 0xBF | 0xF0..=0xF2 | 0xF8 | 0xFF)
}

fn read_stamp(b: &[u8]) -> u64 {
    let (high, middle, low) = (b[0] >> 1 & 7, [b[1], b[2] >> 1], [b[3], b[4] >> 1]);
    let fifteen = |[a, b]: [u8; 2]| u64::from(a) << 7 | u64::from(b);
    u64::from(high) << 30 | fifteen(middle) << 15 | fifteen(low)
}

fn write_stamp(b: &mut [u8], ticks: u64) {
    let ticks = ticks % STAMP_WRAP;
    b[0] = b[0] & 0xF1 | ((ticks >> 30) as u8) << 1;
    b[1] = (ticks >> 22) as u8;
    b[2] = b[2] & 1 | ((ticks >> 15) as u8) << 1;
    b[3] = (ticks >> 7) as u8;
    b[4] = b[4] & 1 | (ticks as u8) << 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pes(pts: u64, dts: u64) -> [u8; PACKET_BYTES] {
        let mut packet = [0; PACKET_BYTES];
        packet[..4].copy_from_slice(&[0x47, 0x41, 0x00, 0x1E]);
        packet[4..13].copy_from_slice(&[0, 0, 1, 0xE0, 0, 0, 0x80, 0xC0, 10]);
        packet[13..18].copy_from_slice(&[0x31, 0, 1, 0, 1]);
        packet[18..23].copy_from_slice(&[0x11, 0, 1, 0, 1]);
        write_stamp(&mut packet[13..], pts);
        write_stamp(&mut packet[18..], dts);
        packet
    }

    #[test]
    fn the_first_repetition_is_unchanged() {
        let mut packet = pes(1, 2);
        let before = packet;
        Restamper::new().apply(&mut packet, 0);
        assert_eq!(packet, before);
    }

    #[test]
    fn counters_continue_and_stamps_move_in_the_second_repetition() {
        let mut restamper = Restamper::new();
        let (mut first, mut second) = (pes(STAMP_WRAP - 1, 5), pes(STAMP_WRAP - 1, 5));
        restamper.apply(&mut first, 0);
        restamper.repeat(300 * 90_000);
        restamper.apply(&mut second, 0);
        assert_eq!((first[3] & 15, second[3] & 15), (14, 15));
        assert_eq!(read_stamp(&second[13..]), 89_999);
        assert_eq!(read_stamp(&second[18..]), 90_005);
        assert_eq!((second[13] & 0xF1, second[15] & 1, second[17] & 1), (0x31, 1, 1));
        restamper.repeat(0);
        let mut third = pes(0, 0);
        restamper.apply(&mut third, 0);
        assert_eq!(third[3] & 15, 0);
    }

    #[test]
    fn hostile_headers_neither_panic_nor_change() {
        for start in [4, 0xB0, 180, 183, 200] {
            let mut packet = pes(1, 1);
            packet[3] |= 0x20;
            packet[4] = start;
            let mut restamper = Restamper::new();
            restamper.repeat(300);
            let before = packet;
            restamper.apply(&mut packet, 0);
            assert_eq!(packet, before, "adaptation field of {start}");
        }
    }

    #[test]
    fn repetitions_are_counted_for_years() {
        let mut restamper = Restamper::new();
        restamper.repetition = u32::MAX.into();
        restamper.repeat(300);
        let mut packet = pes(1, 1);
        restamper.apply(&mut packet, 0);
        assert_eq!(read_stamp(&packet[13..]), 2);
    }
}
