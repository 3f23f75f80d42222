//! Finds how many samples a report of lateness stands for.
//!
//! The device drops each late packet and reports that, without the packet's number. Reports and
//! burst acknowledgements come in the order of the packets, so each belongs to the oldest burst
//! that has not been acknowledged. All packets of a burst but the last are full, unless the caller
//! flushed or left a gap; there the burst is cut into stretches with the same property. The last
//! packet was late if all were, or if its acknowledgement does not come.
//!
//! So the numbers are exact unless a burst has been reported late, and not acknowledged, while
//! others are behind it: a further report may be about one of those, or about a stretch of another
//! length. Where a burst ran dry behind a stretch that does not end it, this holds for the first
//! report too.
//!
//! A radio keeps [`HELD`] messages while one waits for its acknowledgement, and loses the others.
//! Those that it kept come behind the packets that the lost ones were about. So where as many came
//! since a burst was sent, any packet of it may have been late: the reports are then a lower bound,
//! and the samples of the burst an upper one.

use std::collections::VecDeque;

/// The most stretches that are stored; with more, the oldest are dropped.
const BURSTS: usize = 4096;

/// The messages that a radio keeps for its host; it loses further ones. So many are in the queue of
/// errors of the FPGA's `radio_tx_core`.
const HELD: u64 = 32;

/// How far from the last sample the time of an acknowledgement may be, ticks: a radio reads its
/// clock when the sample has left. An exact one has priority.
const ACK_SLACK_TICKS: u64 = 64;

/// A burst that has not been acknowledged, or a stretch of one that ends with a short packet.
#[derive(Debug, Clone, Copy)]
struct SentBurst {
    packets: u64,
    samples: u64,
    last_samples: u64,
    /// Time of the radio's last sample, ticks, in a burst that has time.
    last_ticks: Option<u64>,
    /// The burst ends here.
    ended: bool,
    lates: u64,
    /// The messages that had come when its first packet was sent.
    before: u64,
}

impl SentBurst {
    /// Returns whether all of its packets are known.
    fn is_whole(&self, full: u64) -> bool {
        self.ended || self.last_samples < full
    }

    /// Returns whether every packet was reported late.
    fn is_all_late(&self, full: u64) -> bool {
        self.is_whole(full) && self.lates >= self.packets
    }

    /// Returns whether its last, short packet may have been late or not: some were, and no
    /// acknowledgement tells.
    fn is_unclear(&self, full: u64) -> bool {
        !self.ended && self.lates > 0 && !self.is_all_late(full)
    }

    /// Returns the samples counted too much, when the last packet was late.
    fn excess(&self, full: u64) -> u64 {
        let tail = self.ended && self.lates > 0 && !self.is_all_late(full);
        if tail { full - self.last_samples } else { 0 }
    }
}

/// The bursts in flight.
#[derive(Debug)]
pub(super) struct PendingBursts {
    full: u64,
    ticks_per_sample: u64,
    bursts: VecDeque<SentBurst>,
    /// No packet was sent yet.
    fresh: bool,
    /// Reports that may have been about another burst than the oldest.
    ambiguous: u64,
    /// A burst ran dry since the last acknowledgement.
    dry: bool,
    /// The messages so far, and up to the last one that was no acknowledgement.
    messages: u64,
    faults: u64,
    /// Samples counted as late since the last acknowledgement.
    counted: u64,
    /// See [`PendingBursts::unreported_samples`].
    unreported: u64,
    /// All samples of the same bursts.
    doubted: u64,
}

impl PendingBursts {
    /// Returns an empty list; `full` is the samples of a full packet, each of which lasts
    /// `ticks_per_sample` ticks of the radio.
    pub fn new(full: u64, ticks_per_sample: u64) -> Self {
        let bursts = VecDeque::with_capacity(BURSTS);
        Self {
            full,
            ticks_per_sample,
            bursts,
            fresh: true,
            ambiguous: 0,
            dry: false,
            messages: 0,
            faults: 0,
            counted: 0,
            unreported: 0,
            doubted: 0,
        }
    }

    /// Returns the bursts that have packets without a report.
    fn open(&self) -> impl Iterator<Item = (usize, &SentBurst)> {
        self.bursts.iter().enumerate().filter(|(_, burst)| !burst.is_all_late(self.full))
    }

    /// Returns whether a report is missing: each burst's end has one, transmitted or late.
    pub fn is_waiting(&self) -> bool {
        let ended = self.open().filter(|(_, burst)| burst.ended).count() as u64;
        ended > self.open().map(|(_, burst)| burst.lates).sum()
    }

    /// Returns whether the end of a burst has neither been acknowledged nor reported late. With
    /// packets out of their order, reports of lateness may have been about earlier bursts.
    pub fn is_unacknowledged(&self, in_order: bool) -> bool {
        let silent = |burst: &SentBurst| !(in_order && burst.is_all_late(self.full));
        self.bursts.iter().any(|burst| burst.ended && silent(burst))
    }

    /// Reports that may have been about another burst than the one they were counted for.
    pub fn ambiguous(&self) -> u64 {
        self.ambiguous
    }

    /// Returns the packets of bursts whose end has not been acknowledged.
    pub fn packets(&self) -> u64 {
        self.open().map(|(_, burst)| burst.packets).sum()
    }

    /// Returns the most samples that were late without a report, in the bursts that were
    /// acknowledged or closed. With packets out of their order, reports between the same
    /// acknowledgements may be about earlier bursts.
    pub fn unreported_samples(&self, in_order: bool) -> u64 {
        if in_order { self.unreported } else { self.doubted }
    }

    /// Counts a sent packet; with `eob` it ends its burst. `ticks` is the time of its first sample.
    pub fn packet(&mut self, samples: u64, ticks: Option<u64>, eob: bool) {
        self.fresh = false;
        if self.bursts.back().is_none_or(|burst| burst.is_whole(self.full)) {
            if self.bursts.len() == BURSTS {
                self.bursts.pop_front();
                self.ambiguous += 1;
            }
            self.bursts.push_back(SentBurst {
                packets: 0,
                samples: 0,
                last_samples: 0,
                last_ticks: None,
                ended: false,
                lates: 0,
                before: self.messages,
            });
        }
        let Some(burst) = self.bursts.back_mut() else { return };
        burst.packets += 1;
        burst.samples += samples;
        burst.last_samples = samples;
        // A packet without samples of the caller ends with one zero sample.
        let last = samples.max(1).wrapping_mul(self.ticks_per_sample) - 1;
        burst.last_ticks = ticks.map(|ticks| ticks.wrapping_add(last));
        burst.ended = eob;
    }

    /// Takes a message that is no acknowledgement.
    fn fault(&mut self) {
        self.messages += 1;
        self.faults = self.messages;
    }

    /// Takes a report that a burst ran dry.
    pub fn run_dry(&mut self) {
        self.fault();
        self.dry = true;
    }

    /// Counts a late packet and returns its samples.
    pub fn late(&mut self) -> u64 {
        self.fault();
        let samples = self.late_samples();
        self.counted += samples;
        samples
    }

    fn late_samples(&mut self) -> u64 {
        let Some((index, _)) = self.open().next() else {
            return if self.fresh { 0 } else { self.full };
        };
        let behind = index + 1 < self.bursts.len();
        let burst = &mut self.bursts[index];
        // Its end may have been late already. In a burst that has begun no packet is late, unless
        // it ran dry; then a stretch without an acknowledgement may have been transmitted.
        let passed = self.dry && !burst.ended;
        self.ambiguous += u64::from(behind && (burst.lates > 0 || passed));
        burst.lates += 1;
        if burst.is_all_late(self.full) { burst.last_samples } else { self.full }
    }

    /// Acknowledges the burst whose last sample was at `ticks`. Returns the samples that had been
    /// counted too much for those before it.
    pub fn acknowledge(&mut self, ticks: u64) -> u64 {
        self.messages += 1;
        let ended = || self.open().filter(|(_, burst)| burst.ended);
        let away = |burst: &SentBurst| {
            burst.last_ticks.map_or(0, |last| (ticks.wrapping_sub(last) as i64).unsigned_abs())
        };
        let exact = ended().find(|(_, burst)| away(burst) == 0);
        let near = || ended().find(|(_, burst)| away(burst) <= ACK_SLACK_TICKS);
        // The device's clock was set since: an only burst is known all the same.
        let only = || ended().next().filter(|_| ended().nth(1).is_none());
        let Some((index, _)) = exact.or_else(near).or_else(only) else {
            self.ambiguous += u64::from(!self.bursts.is_empty());
            return 0;
        };
        self.dry = false;
        // One before it that nothing was said about: its acknowledgement is lost, or was this one.
        let silent = self.open().any(|(place, burst)| place < index && burst.lates == 0);
        self.bound(index + 1, silent);
        let full = self.full;
        let (mut excess, mut unclear) = (0, 0);
        for (place, burst) in self.bursts.drain(..=index).enumerate() {
            if place != index {
                excess += burst.excess(full);
                unclear += u64::from(burst.is_unclear(full));
            }
        }
        self.ambiguous += unclear;
        excess
    }

    /// Bounds the late samples of the first bursts, `count` of them. Messages about them may be
    /// lost; if `silent`, they are.
    fn bound(&mut self, count: usize, silent: bool) {
        let counted = std::mem::take(&mut self.counted);
        let Some(first) = self.bursts.front() else { return };
        let faulty = self.faults > first.before;
        let lacking = faulty && self.messages - first.before >= HELD;
        if lacking || silent {
            let all: u64 = self.bursts.range(..count).map(|burst| burst.samples).sum();
            self.unreported += all.saturating_sub(counted);
            self.doubted += all;
        }
        if lacking {
            self.ambiguous += self.bursts.range(..count).map(|burst| burst.lates).sum::<u64>();
        }
    }

    /// Ends the reports. Returns the samples that had been counted too much.
    pub fn close(&mut self, in_order: bool) -> u64 {
        // Behind the last acknowledgement no further message shows that one is missing.
        self.bound(self.bursts.len(), self.is_unacknowledged(in_order));
        let full = self.full;
        self.ambiguous += self.bursts.iter().filter(|burst| burst.is_unclear(full)).count() as u64;
        self.bursts.drain(..).map(|burst| burst.excess(full)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends a burst of packets from `ticks` on.
    fn send(lates: &mut PendingBursts, ticks: u64, packets: &[u64]) -> u64 {
        let mut next = ticks;
        for (index, samples) in packets.iter().enumerate() {
            lates.packet(*samples, Some(next), index + 1 == packets.len());
            next += samples;
        }
        next - 1
    }

    #[test]
    fn an_acknowledgement_a_few_ticks_away_is_of_its_burst() {
        let mut lates = PendingBursts::new(100, 16);
        lates.packet(100, Some(1000), true);
        lates.packet(50, Some(9000), true);
        lates.acknowledge(1000 + 100 * 16 - 1 + 70);
        assert_eq!(lates.bursts.len(), 2, "too far away");
        lates.acknowledge(1000 + 100 * 16 - 1 + 2);
        assert_eq!(lates.bursts.len(), 1);
        lates.acknowledge(9000 + 50 * 16 - 1);
        assert!(!lates.is_unacknowledged(true));
    }

    #[test]
    fn an_acknowledgement_of_another_time_is_of_the_only_burst() {
        let mut lates = PendingBursts::new(100, 1);
        send(&mut lates, 1000, &[100, 30]);
        assert_eq!(lates.late(), 100);
        // The clock was set meanwhile.
        assert_eq!(lates.acknowledge(77_000), 0);
        assert!(!lates.is_unacknowledged(true));
        send(&mut lates, 2000, &[100, 30]);
        send(&mut lates, 3000, &[40]);
        lates.acknowledge(77_000);
        assert_eq!((lates.bursts.len(), lates.ambiguous()), (2, 1));
    }

    #[test]
    fn behind_a_flush_a_report_may_be_about_a_packet_of_another_length() {
        let mut lates = PendingBursts::new(100, 1);
        lates.packet(100, Some(0), false);
        lates.packet(30, Some(100), false);
        lates.packet(0, Some(130), true);
        lates.run_dry();
        assert_eq!((lates.late(), lates.ambiguous()), (100, 1));
        assert_eq!((lates.waiting_samples(), lates.close(true)), (100, 0));
        assert_eq!(lates.ambiguous(), 2, "the short packet may have been the late one");
    }

    #[test]
    fn a_short_packet_that_is_its_own_burst_is_known() {
        let mut lates = PendingBursts::new(100, 1);
        let first = send(&mut lates, 1000, &[30]);
        send(&mut lates, 2000, &[40]);
        let third = send(&mut lates, 3000, &[50]);
        assert_eq!(lates.acknowledge(first), 0);
        assert_eq!(lates.late(), 40);
        assert!(lates.is_waiting());
        assert_eq!(lates.acknowledge(third), 0);
        assert!(!lates.is_waiting());
    }

    #[test]
    fn the_head_of_a_burst_is_full_packets() {
        let mut lates = PendingBursts::new(100, 1);
        let last = send(&mut lates, 1000, &[100, 100, 7]);
        assert_eq!((lates.late(), lates.late()), (100, 100));
        assert_eq!(lates.acknowledge(last), 0);
        send(&mut lates, 5000, &[100, 100, 7]);
        assert_eq!((lates.late(), lates.late(), lates.late()), (100, 100, 7));
        assert!(!lates.is_waiting());
    }

    #[test]
    fn a_tail_that_is_late_shows_when_its_acknowledgement_does_not_come() {
        let mut lates = PendingBursts::new(100, 1);
        send(&mut lates, 1000, &[100, 100, 7]);
        let second = send(&mut lates, 5000, &[100, 9]);
        assert_eq!(lates.late(), 100, "it was the last one");
        assert_eq!(lates.acknowledge(second), 93);
        send(&mut lates, 9000, &[100, 9]);
        assert_eq!(lates.late(), 100);
        assert_eq!(lates.close(true), 91);
    }

    #[test]
    fn short_packets_in_the_middle_of_a_burst_count_what_they_hold() {
        let mut lates = PendingBursts::new(100, 1);
        let last = send(&mut lates, 1000, &[50, 60, 100, 100, 7, 0]);
        assert_eq!((lates.late(), lates.late()), (50, 60));
        assert_eq!((lates.late(), lates.late(), lates.late()), (100, 100, 7));
        assert!(lates.is_waiting());
        assert_eq!((lates.acknowledge(last + 1), lates.is_waiting()), (0, false));
        send(&mut lates, 5000, &[50, 60]);
        let third = send(&mut lates, 9000, &[100, 9]);
        assert_eq!((lates.late(), lates.late()), (50, 60));
        assert_eq!(lates.acknowledge(third), 0);
    }

    #[test]
    fn a_report_that_may_be_about_the_next_burst_is_counted() {
        let mut lates = PendingBursts::new(100, 1);
        send(&mut lates, 1000, &[100, 100, 7]);
        send(&mut lates, 5000, &[100, 9]);
        assert!(lates.is_waiting());
        assert_eq!((lates.late(), lates.ambiguous()), (100, 0));
        assert_eq!((lates.late(), lates.ambiguous()), (100, 1));
        assert!(lates.is_unacknowledged(true) && !lates.is_waiting(), "both ends may have been late");
    }

    #[test]
    fn a_report_before_anything_was_sent_is_about_another_stream() {
        let mut lates = PendingBursts::new(100, 1);
        assert_eq!(lates.late(), 0);
        lates.packet(10, None, true);
        assert_eq!((lates.late(), lates.late()), (10, 100));
    }

    #[test]
    fn bursts_without_time_are_acknowledged_in_turn() {
        let mut lates = PendingBursts::new(100, 1);
        for _ in 0..2 * BURSTS {
            lates.packet(10, None, true);
        }
        for _ in 0..BURSTS {
            assert!(lates.is_waiting());
            assert_eq!(lates.acknowledge(77), 0);
        }
        assert!(!lates.is_waiting());
        assert_eq!((lates.acknowledge(77), lates.late()), (0, 100));
    }
}
