//! The record of sent packets: the samples in any stretch of packets.

use std::collections::VecDeque;
use std::ops::Range;

/// The runs of equal packets that fit the record.
const RUNS: usize = 4096;

/// The part of these for packets that the device has passed. A report may still name one of them.
const OLD_RUNS: usize = RUNS / 4;

/// Consecutive equal packets, each at the time where the one before ends, or all without time.
#[derive(Debug, Clone, Copy)]
struct EqualPackets {
    /// The number of the first packet.
    first: u64,
    packets: u64,
    flow_bytes: u64,
    /// Samples of the caller in each.
    samples: u64,
    /// Time of the first one, ticks.
    start: Option<u64>,
}

impl EqualPackets {
    fn end(&self) -> u64 {
        self.first + self.packets
    }

    /// Returns the time behind the last one, ticks.
    fn end_ticks(&self, ticks_per_sample: u64) -> Option<u64> {
        let ticks = self.packets * self.samples * ticks_per_sample;
        self.start.map(|start| start.wrapping_add(ticks))
    }
}

/// Consecutive equal packets that are a part of a stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub first: u64,
    pub packets: u64,
    pub flow_bytes: u64,
    pub samples: u64,
}

impl Piece {
    /// Returns the number after that of its last packet.
    pub fn end(&self) -> u64 {
        self.first + self.packets
    }

    /// Returns the samples of all its packets.
    pub fn total(&self) -> u64 {
        self.packets * self.samples
    }
}

/// Data packets by their number, counted from 0 at the handshake without wrapping.
///
/// The device has passed the packets before one of them; those behind it are in flight. The record
/// never grows: while it is full, sending has to wait.
#[derive(Debug)]
pub(super) struct PacketLog {
    runs: VecDeque<EqualPackets>,
    /// Runs at the front that the device has passed.
    old: usize,
    sent: u64,
    passed: u64,
    /// Samples in flight.
    samples: u64,
    ticks_per_sample: u64,
}

impl PacketLog {
    /// Returns an empty record of a stream whose samples last `ticks_per_sample` ticks each.
    pub fn new(ticks_per_sample: u64) -> Self {
        let runs = VecDeque::with_capacity(RUNS);
        Self { runs, old: 0, sent: 0, passed: 0, samples: 0, ticks_per_sample }
    }

    /// Returns an empty record of the same stream.
    pub fn renewed(&self) -> Self {
        Self::new(self.ticks_per_sample)
    }

    /// Returns whether nothing more can be recorded except one GSO batch.
    pub fn is_full(&self) -> bool {
        self.runs.len() - self.old + OLD_RUNS + 16 >= RUNS
    }

    /// Returns whether a query of the device's count is due.
    pub fn is_half_full(&self) -> bool {
        2 * (self.runs.len() - self.old) >= RUNS - OLD_RUNS
    }

    /// Returns the number of the next packet.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns the number of the first packet in flight.
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// Returns the samples in flight.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns the number of the oldest stored packet.
    pub fn oldest(&self) -> u64 {
        self.runs.front().map_or(self.sent, |run| run.first)
    }

    /// Returns whether packets in flight have times.
    pub fn has_times(&self) -> bool {
        self.runs.range(self.old..).any(|run| run.start.is_some())
    }

    /// Returns the first time of a packet in flight that is later than `now`, if less than `bytes`
    /// are in flight before it.
    pub fn next_start(&self, now: u64, bytes: u64) -> Option<u64> {
        let mut before = 0;
        for run in self.runs.range(self.old..) {
            let passed = self.passed.saturating_sub(run.first);
            let ticks = passed * run.samples * self.ticks_per_sample;
            let start = run.start.map(|start| start.wrapping_add(ticks));
            let later = start.filter(|start| start.wrapping_sub(now) as i64 > 0);
            if later.is_some() || before >= bytes {
                return later.filter(|_| before < bytes);
            }
            before += (run.packets - passed) * run.flow_bytes;
        }
        None
    }

    /// Records a sent packet.
    pub fn push(&mut self, flow_bytes: u64, samples: u64, start: Option<u64>) {
        let first = self.sent;
        self.sent += 1;
        self.samples += samples;
        if let Some(last) = self.runs.back_mut() {
            if (last.flow_bytes, last.samples) == (flow_bytes, samples)
                && last.end_ticks(self.ticks_per_sample) == start
            {
                last.packets += 1;
                self.old = self.old.min(self.runs.len() - 1);
                return;
            }
        }
        if self.old >= OLD_RUNS {
            self.runs.pop_front();
            self.old -= 1;
        }
        self.runs.push_back(EqualPackets { first, packets: 1, flow_bytes, samples, start });
    }

    /// Records that the device has passed the packets before number `to`, which may be less than
    /// before. Updates the samples in flight.
    pub fn pass(&mut self, to: u64) {
        let (from, back) = (self.passed.min(to), to < self.passed);
        let between: u64 = self.pieces(from..self.passed.max(to)).map(|piece| piece.total()).sum();
        self.samples = if back { self.samples + between } else { self.samples - between };
        self.passed = to;
        if back {
            self.old = self.runs.partition_point(|run| run.end() <= to);
        }
        while self.runs.get(self.old).is_some_and(|run| run.end() <= to) {
            self.old += 1;
        }
    }

    /// Returns the packets of a stretch that are still stored, in their order.
    pub fn pieces(&self, range: Range<u64>) -> impl Iterator<Item = Piece> + '_ {
        let begin = self.runs.partition_point(|run| run.end() <= range.start);
        let runs = self.runs.range(begin..).take_while(move |run| run.first < range.end);
        runs.map(move |run| {
            let first = run.first.max(range.start);
            let packets = run.end().min(range.end) - first;
            Piece { first, packets, flow_bytes: run.flow_bytes, samples: run.samples }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_cut_from_runs() {
        let mut record = PacketLog::new(1);
        (0..5).for_each(|_| record.push(416, 100, None));
        record.push(216, 50, None);
        (0..4).for_each(|_| record.push(416, 100, None));
        assert_eq!((record.runs.len(), record.sent(), record.samples()), (3, 10, 950));
        let pieces: Vec<_> = record.pieces(3..8).map(|one| (one.first, one.total())).collect();
        assert_eq!(pieces, [(3, 200), (5, 50), (6, 200)]);
        assert_eq!(record.pieces(4..4).map(|one| one.total()).sum::<u64>(), 0);
    }

    #[test]
    fn passing_goes_both_ways() {
        let mut record = PacketLog::new(1);
        for start in [1000, 1100, 5000] {
            record.push(416, 100, Some(start));
        }
        let next = |record: &PacketLog| record.next_start(0, u64::MAX);
        assert_eq!((record.runs.len(), next(&record)), (2, Some(1000)));
        assert_eq!(record.next_start(1000, 833), Some(5000));
        assert_eq!(record.next_start(1000, 832), None, "two packets are before it");
        record.pass(1);
        assert_eq!((record.samples(), next(&record)), (200, Some(1100)));
        record.pass(3);
        assert_eq!((record.samples(), next(&record)), (0, None));
        record.pass(2);
        assert_eq!((record.samples(), next(&record)), (100, Some(5000)));
        record.push(416, 100, Some(5100));
        assert_eq!((record.samples(), record.passed(), record.sent()), (200, 2, 4));
    }

    #[test]
    fn a_full_record_says_so_and_old_runs_make_room() {
        let mut record = PacketLog::new(1);
        let capacity = record.runs.capacity();
        let push = |record: &mut PacketLog| record.push(16 + record.sent() % 2 * 8, 1, None);
        while !record.is_full() {
            push(&mut record);
        }
        assert!(record.is_half_full() && record.sent() > 3000);
        for _ in 0..3 * RUNS as u64 {
            record.pass(record.passed() + 1);
            assert!(!record.is_full());
            push(&mut record);
            assert_eq!(record.runs.capacity(), capacity);
        }
        let kept = record.passed() - record.oldest();
        assert!((OLD_RUNS as u64 - 2..=OLD_RUNS as u64).contains(&kept), "{kept}");
    }
}
