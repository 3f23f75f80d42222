//! The score of a receiver's output.

use super::{AtscError, Recording, file};
use millstream_atsc::params::PACKET_BYTES;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Counts of packets, judged by their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PacketScore {
    /// Packets put out.
    pub packets: u64,
    /// With the transport error indicator set.
    pub flagged: u64,
    /// Neither flagged nor sent: undetected errors.
    pub undetected: u64,
    /// Packets sent within the counted time.
    pub expected: u64,
    /// Of those, the ones that came out right.
    pub right: u64,
    /// The first right packet, as time after the start, seconds.
    pub first_s: Option<f64>,
}

impl PacketScore {
    /// Share of the packets within the counted time that did not come out right.
    #[must_use]
    pub fn error_rate(&self) -> f64 {
        1.0 - self.right as f64 / self.expected.max(1) as f64
    }

    /// Judges a transport stream. Packets sent before `from_s` after the start, or within the last
    /// `spare_s`, do not count as expected.
    ///
    /// # Errors
    /// [`AtscError::File`] when it cannot be read; a missing file holds no packet.
    pub fn of_file(
        path: &Path,
        recording: &Recording,
        from_s: f64,
        spare_s: f64,
    ) -> Result<Self, AtscError> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(Self::of(&bytes, recording, from_s, spare_s)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(Self::of(&[], recording, from_s, spare_s))
            }
            Err(error) => Err(file(path)(error)),
        }
    }

    /// Judges a transport stream in memory.
    #[must_use]
    pub fn of(stream: &[u8], recording: &Recording, from_s: f64, spare_s: f64) -> Self {
        let first = recording.packet_at(from_s);
        let end = recording.packet_at(recording.seconds - spare_s).max(first);
        let mut seen = vec![false; (end - first) as usize];
        let mut score = Self { expected: end - first, ..Self::default() };
        let packets = recording.packets();
        for packet in stream.as_chunks::<PACKET_BYTES>().0 {
            score.packets += 1;
            match packets.number(packet) {
                Some(number) => {
                    score.first_s.get_or_insert(number as f64 / recording.packet_at(1.0) as f64);
                    let place = number.checked_sub(first).map(|place| place as usize);
                    if let Some(seen) = place.and_then(|place| seen.get_mut(place)) {
                        *seen = true;
                    }
                }
                None if packet[1] & 0x80 != 0 => score.flagged += 1,
                None => score.undetected += 1,
            }
        }
        score.right = seen.iter().filter(|seen| **seen).count() as u64;
        score
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_atsc::tx::Impairments;

    #[test]
    fn every_packet_is_right_flagged_or_wrong_and_none_counts_twice() {
        let recording = Recording {
            rate_hz: 6.25e6,
            seconds: 0.1,
            seed: 3,
            impairments: Impairments::default(),
        };
        let sent = recording.packets();
        let last = recording.packet_at(0.08);
        let mut stream: Vec<[u8; 188]> = (100..=last).map(|n| sent.packet(n)).collect();
        stream.push(sent.packet(last - 1));
        stream[500][1] |= 0x80;
        stream[501][100] ^= 4;
        let score = PacketScore::of(stream.as_flattened(), &recording, 0.02, 0.02);
        assert_eq!(score.expected, last - recording.packet_at(0.02));
        assert_eq!(score.right, score.expected - 2);
        assert_eq!((score.flagged, score.undetected), (1, 1));
        assert_eq!(score.packets, last - 100 + 2);
        assert!((score.error_rate() - 2.0 / score.expected as f64).abs() < 1e-12);
        assert!((score.first_s.unwrap() - 100.0 / 12_894.0).abs() < 1e-5);
        assert_eq!(PacketScore::of(&[], &recording, 0.02, 0.02).error_rate(), 1.0);
    }
}
