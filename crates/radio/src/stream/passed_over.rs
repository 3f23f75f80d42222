//! The packets that come while a stream is set up, and are passed over.

use millstream_wire::chdr::{self, SC16_LEN};
use millstream_wire::{Epid, Width};

use super::arrival::Arrival;
use super::fates::HISTORY;

/// The latest data packets that are searched for a second copy.
const REMEMBERED: usize = 64;

/// The most packets that are passed over behind a new set-up, because they are older. A wrong time
/// in one packet of the set-up must not cost all that follow.
const DELAYED_OVER_MAX: u16 = 64;

/// A data packet that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recent {
    /// Its number and time.
    Good(u16, Option<u64>),
    /// Number and samples of a damaged one.
    Damaged(u16, u64),
}

/// Packets of a stream that came during another wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SkippedPackets {
    /// The number of packets, without second copies.
    pub packets: u64,
    /// Their length in flow control, bytes.
    pub flow_bytes: u64,
    /// Samples in them, without second copies.
    pub samples: u64,
    /// Data packets of which only the header could be decoded, without copies of others, and the
    /// samples that they had by it.
    pub damaged: u64,
    pub damaged_samples: u64,
    /// The packets that came last, and their count.
    recent: [Option<Recent>; REMEMBERED],
    data: usize,
    /// Number and time of the packet with the latest time.
    newest: Option<(u16, u64)>,
    /// The number and the time that were due before the set-up.
    pub due: Option<(u16, u64)>,
    /// Packets that came behind the set-up.
    delayed: u16,
}

impl Default for SkippedPackets {
    fn default() -> Self {
        Self {
            packets: 0,
            flow_bytes: 0,
            samples: 0,
            damaged: 0,
            damaged_samples: 0,
            recent: [None; REMEMBERED],
            data: 0,
            newest: None,
            due: None,
            delayed: 0,
        }
    }
}

impl SkippedPackets {
    /// Counts a packet.
    pub fn note(&mut self, packet: &chdr::Packet<'_>) {
        if let Ok(data) = chdr::DataRepr::parse(packet) {
            if !self.note_data(&Arrival::of(&data)) {
                // The device does not count copies.
                return;
            }
        }
        self.packets += 1;
        self.flow_bytes += packet.flow_len() as u64;
    }

    /// Counts the samples of a data packet. Returns false for a second copy.
    pub(super) fn note_data(&mut self, arrival: &Arrival) -> bool {
        let good = Recent::Good(arrival.seq, arrival.ticks);
        if self.recent.contains(&Some(good)) {
            return false;
        }
        for recent in &mut self.recent {
            if let Some(Recent::Damaged(seq, samples)) = *recent {
                if seq == arrival.seq {
                    // This is a whole copy of it.
                    *recent = None;
                    self.damaged -= 1;
                    self.damaged_samples -= samples;
                }
            }
        }
        self.remember(good);
        self.samples += arrival.samples;
        let later = |newest: u64, ticks: u64| ticks.wrapping_sub(newest) < 1 << 63;
        if let Some(ticks) = arrival.ticks {
            if self.newest.is_none_or(|(_, newest)| later(newest, ticks)) {
                self.newest = Some((arrival.seq, ticks));
            }
        }
        true
    }

    /// Counts a datagram of the device that cannot be decoded, if it was a data packet to `epid`.
    pub fn note_damaged(&mut self, bytes: &[u8], epid: Epid, width: Width) {
        let header = chdr::Header::peek(bytes).ok();
        let header = header.filter(|header| header.kind.is_data() && header.dst_epid == epid);
        let Some(header) = header else { return };
        let is_copy = |recent: &Option<Recent>| match *recent {
            Some(Recent::Good(seq, _) | Recent::Damaged(seq, _)) => seq == header.seq,
            None => false,
        };
        if !self.recent.iter().any(is_copy) {
            let payload_len = usize::from(header.length).saturating_sub(header.len(width));
            let samples = (payload_len / SC16_LEN) as u64;
            self.remember(Recent::Damaged(header.seq, samples));
            self.damaged += 1;
            self.damaged_samples += samples;
        }
    }

    fn remember(&mut self, packet: Recent) {
        self.recent[self.data % REMEMBERED] = Some(packet);
        self.data += 1;
    }

    /// Returns whether a packet behind the set-up is older than one of these: it was delayed, and
    /// is passed over like them.
    pub(super) fn takes(&mut self, arrival: &Arrival) -> bool {
        let is_older = self.newest.zip(arrival.ticks).is_some_and(|((seq, newest), ticks)| {
            let before = seq.wrapping_sub(arrival.seq) < 0x8000;
            before && newest.wrapping_sub(ticks) < 1 << 63
        });
        self.take_if(is_older)
    }

    /// Returns the same of a packet whose number and time do not fit the new numbers, but those
    /// before them: it is of a run that was still to come when the stream was set up.
    pub(super) fn takes_old(&mut self, arrival: &Arrival) -> bool {
        let times = self.newest.zip(arrival.ticks);
        let is_over =
            times.is_some_and(|((_, newest), ticks)| newest.wrapping_sub(ticks) < 1 << 63);
        self.take_if(is_over && self.since_due(arrival).is_some())
    }

    /// Returns the same of a packet in a run with the new numbers, whose number lies far from them
    /// and whose time is over, with `packet_ticks` a packet. The runs before the set-up explain
    /// both if their packets had the time for so many numbers, but for two short ones; then it
    /// shows no clock that was set back.
    pub(super) fn takes_of_before(&mut self, arrival: &Arrival, packet_ticks: u64) -> bool {
        let had_time = self.since_due(arrival).is_some_and(|(packets, ticks)| {
            ticks >= u64::from(packets.saturating_sub(2)).wrapping_mul(packet_ticks)
        });
        self.take_if(had_time)
    }

    /// Returns how many packets and ticks a packet lies behind what was due before the set-up, if
    /// it goes on from that.
    fn since_due(&self, arrival: &Arrival) -> Option<(u16, u64)> {
        let ((seq, due), ticks) = self.due.zip(arrival.ticks)?;
        let (packets, ticks) = (arrival.seq.wrapping_sub(seq), ticks.wrapping_sub(due));
        (packets < HISTORY && ticks < 1 << 63).then_some((packets, ticks))
    }

    fn take_if(&mut self, is_delayed: bool) -> bool {
        let takes = is_delayed && self.delayed < DELAYED_OVER_MAX;
        self.delayed += u16::from(takes);
        takes
    }

    /// Returns the number behind that of the newest packet.
    pub(super) fn next_seq(&self) -> u16 {
        self.newest.map_or(0, |(seq, _)| seq.wrapping_add(1))
    }

    /// Takes packets and bytes in flow control: another count of them begins.
    pub fn take_flow(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.packets), std::mem::take(&mut self.flow_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_time_in_a_set_up_does_not_cost_all_that_follow() {
        let arrival = |seq, ticks| Arrival { seq, ticks: Some(ticks), samples: 100 };
        let mut skipped = SkippedPackets::default();
        assert!(skipped.note_data(&arrival(0x7fff, 1 << 62)));
        let taken = (0..1000).filter(|seq| skipped.takes(&arrival(*seq, 1000))).count();
        assert_eq!(taken, usize::from(DELAYED_OVER_MAX));
    }

    #[test]
    fn a_damaged_packet_counts_once_and_not_if_a_copy_of_it_is_whole() {
        let (epid, width) = (Epid(7), Width::W64);
        let cut = |seq, dst_epid| {
            let kind = chdr::PacketType::TimedData;
            let header = chdr::Header { kind, seq, dst_epid, length: 416, ..Default::default() };
            header.to_word().unwrap().to_le_bytes()
        };
        let good = |seq| Arrival { seq, ticks: Some(1000), samples: 100 };
        let mut skipped = SkippedPackets::default();
        skipped.note_damaged(&cut(1, Epid(8)), epid, width);
        skipped.note_damaged(&cut(1, epid)[..7], epid, width);
        assert_eq!(skipped.damaged, 0);
        for seq in [1, 2, 2, 3] {
            skipped.note_damaged(&cut(seq, epid), epid, width);
        }
        assert_eq!((skipped.damaged, skipped.damaged_samples), (3, 300));
        assert!(skipped.note_data(&good(3)) && skipped.note_data(&good(4)));
        skipped.note_damaged(&cut(4, epid), epid, width);
        assert_eq!((skipped.damaged, skipped.damaged_samples, skipped.samples), (2, 200, 200));
    }

    #[test]
    fn a_packet_with_an_old_number_is_between_what_was_due_and_what_came() {
        let arrival = |seq, ticks| Arrival { seq, ticks: Some(ticks), samples: 100 };
        let mut skipped = SkippedPackets::default();
        assert!(skipped.note_data(&arrival(3, 5000)));
        assert!(!skipped.takes_old(&arrival(101, 1500)), "nothing was due");
        skipped.due = Some((100, 1000));
        assert!(skipped.takes_old(&arrival(101, 1500)));
        assert!(!skipped.takes_old(&arrival(99, 1500)) && !skipped.takes_old(&arrival(101, 999)));
        assert!(!skipped.takes_old(&arrival(101, 5001)));
        let taken = (0..1000).filter(|_| skipped.takes_old(&arrival(101, 1500))).count();
        assert_eq!(taken, usize::from(DELAYED_OVER_MAX) - 1);
    }

    #[test]
    fn a_packet_of_the_run_before_has_a_number_and_a_time_behind_what_was_due() {
        let arrival = |seq, ticks| Arrival { seq, ticks: Some(ticks), samples: 100 };
        let mut skipped = SkippedPackets::default();
        assert!(!skipped.takes_of_before(&arrival(100, 1000), 100), "nothing was due");
        skipped.due = Some((0xfffe, 1000));
        for (seq, ticks, is_of_it) in [
            (0xfffe, 1000, true),
            (3, 1300, true),
            (3, 1299, false),
            (0xfffe, 999, false),
            (0xfffd, 1500, false),
        ] {
            assert_eq!(skipped.takes_of_before(&arrival(seq, ticks), 100), is_of_it, "{seq}");
        }
        let taken = (0..1000).filter(|_| skipped.takes_of_before(&arrival(3, 1500), 100)).count();
        assert_eq!(taken, usize::from(DELAYED_OVER_MAX) - 2);
    }
}
