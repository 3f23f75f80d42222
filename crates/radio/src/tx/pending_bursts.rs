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
        // The end of one before it that nothing was said about: its acknowledgement is lost, or was
        // this one.
        let silent = ended().any(|(place, burst)| place < index && burst.lates == 0);
        self.dry = false;
        self.end(index + 1, index, silent)
    }

    /// Ends the first bursts, `count` of them, of which so many are `unacknowledged`. Messages
    /// about them may be lost; if `silent`, they are. Returns the samples counted too much.
    fn end(&mut self, count: usize, unacknowledged: usize, silent: bool) -> u64 {
        let full = self.full;
        let before = || self.bursts.range(..unacknowledged);
        let excess = before().map(|burst| burst.excess(full)).sum();
        let unclear = before().filter(|burst| burst.is_unclear(full)).count() as u64;
        self.ambiguous += unclear;
        self.counted = self.counted.saturating_sub(excess);
        self.bound(count, silent);
        self.bursts.drain(..count);
        excess
    }

    /// Bounds the late samples of the first bursts, see [`PendingBursts::end`].
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
        let count = self.bursts.len();
        self.end(count, count, self.is_unacknowledged(in_order))
    }
}

#[cfg(test)]
#[path = "pending_bursts_tests.rs"]
mod tests;
