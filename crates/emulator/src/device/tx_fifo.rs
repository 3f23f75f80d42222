//! The packet buffer of an endpoint: packets from the host that the radio has not taken yet.

use crate::antenna::Sc16;
use millstream_wire::chdr::{MAX_LEN, SC16_LEN};
use millstream_wire::stream::{CommandRepr, SequenceGap};
use std::collections::VecDeque;

/// The samples of the largest possible packet.
const PACKET_SAMPLES_MAX: usize = MAX_LEN / SC16_LEN;

/// The capacity of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FifoSize {
    /// Bytes of packets, header included, each rounded up to whole CHDR words.
    pub bytes: usize,
    pub packets: usize,
}

/// A packet of samples, or its rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TxPacket {
    /// The tick of its arrival.
    pub arrived: u64,
    /// The time of its first sample.
    pub timestamp: Option<u64>,
    /// The gap before it, if its number does not follow the packet before it.
    pub gap: Option<SequenceGap>,
    pub samples: u64,
    /// Its last sample ends a burst.
    pub eob: bool,
}

/// The entry at the head of the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queued {
    Samples(TxPacket),
    /// A stream command, which stays in its place among the packets.
    Command(CommandRepr),
}

/// A queued packet, its size in flow control, and the place of its samples.
#[derive(Debug, Clone, Copy)]
struct QueuedPacket {
    what: Queued,
    flow_bytes: usize,
    place: usize,
    /// The report to the host when it is removed.
    gap: Option<SequenceGap>,
}

/// A buffer of bytes, as in hardware: headers and commands take space too.
///
/// Everything is allocated at once. The samples of a packet are contiguous: if the ring has no
/// space for them before its end they are stored at its beginning, and the ring is longer than the
/// buffer by the largest packet to compensate for that.
#[derive(Debug)]
pub(crate) struct TxFifo {
    size: FifoSize,
    entries: VecDeque<QueuedPacket>,
    /// Empty when the samples' values are not needed: then only their number is stored.
    ring: Box<[Sc16]>,
    write: usize,
    used_bytes: usize,
    samples: u64,
    /// Entries with an event other than sent samples.
    marks: usize,
    flushed_samples: u64,
}

impl TxFifo {
    /// Returns an empty buffer, which stores the samples' values if `keep` is set.
    pub fn new(size: FifoSize, keep: bool) -> Self {
        let ring = if keep { size.bytes / SC16_LEN + PACKET_SAMPLES_MAX } else { 0 };
        Self {
            size,
            entries: VecDeque::with_capacity(size.packets),
            ring: vec![[0; SC16_LEN]; ring].into(),
            write: 0,
            used_bytes: 0,
            samples: 0,
            marks: 0,
            flushed_samples: 0,
        }
    }

    /// Queues `packet` with the samples in `payload`; returns false when there is no space.
    pub fn push_samples(&mut self, packet: TxPacket, flow_bytes: usize, payload: &[Sc16]) -> bool {
        debug_assert_eq!(packet.samples, payload.len() as u64);
        if !self.has_room(flow_bytes) {
            return false;
        }
        let place = self.store(payload);
        self.samples += packet.samples;
        self.push(QueuedPacket {
            what: Queued::Samples(packet),
            flow_bytes,
            place,
            gap: packet.gap,
        });
        true
    }

    /// Queues a stream command; returns false when there is no space.
    pub fn push_command(
        &mut self,
        command: CommandRepr,
        gap: Option<SequenceGap>,
        flow_bytes: usize,
    ) -> bool {
        let fits = self.has_room(flow_bytes);
        if fits {
            self.push(QueuedPacket { what: Queued::Command(command), flow_bytes, place: 0, gap });
        }
        fits
    }

    /// Returns the gap before the head, once.
    pub fn take_gap(&mut self) -> Option<SequenceGap> {
        let entry = self.entries.front_mut()?;
        let gap = entry.gap.take()?;
        self.marks -= usize::from(!entry.is_mark());
        Some(gap)
    }

    /// Returns the oldest entry.
    pub fn head(&self) -> Option<Queued> {
        self.entries.front().map(|entry| entry.what)
    }

    /// Returns the first `count` samples of the head; an empty slice when values are not stored.
    pub fn head_samples(&self, count: u64) -> &[Sc16] {
        let Some(entry) = self.entries.front().filter(|_| !self.ring.is_empty()) else {
            return &[];
        };
        &self.ring[entry.place..][..count as usize]
    }

    /// Removes the first `count` samples of the head. The rest follows without a gap, so its time
    /// is no longer used.
    pub fn advance(&mut self, count: u64) {
        let Some(QueuedPacket { what: Queued::Samples(packet), place, .. }) =
            self.entries.front_mut()
        else {
            return;
        };
        packet.samples -= count;
        packet.timestamp = None;
        *place += count as usize;
        self.samples -= count;
    }

    /// Removes the head; returns its bytes in flow control, and the samples that were left.
    pub fn pop(&mut self) -> Option<(usize, u64)> {
        let entry = self.entries.pop_front()?;
        let samples = match entry.what {
            Queued::Samples(packet) => packet.samples,
            Queued::Command(_) => 0,
        };
        self.samples -= samples;
        self.used_bytes -= entry.flow_bytes;
        self.marks -= usize::from(entry.is_mark());
        Some((entry.flow_bytes, samples))
    }

    /// Drops everything.
    pub fn flush(&mut self) {
        self.flushed_samples += self.samples;
        self.entries.clear();
        (self.used_bytes, self.samples, self.marks) = (0, 0, 0);
    }

    /// Counts samples that were popped to be dropped.
    pub fn note_flushed(&mut self, samples: u64) {
        self.flushed_samples += samples;
    }

    /// Returns the samples that fit, without headers.
    pub fn capacity_samples(&self) -> u64 {
        (self.size.bytes / SC16_LEN) as u64
    }

    /// Returns the samples that wait.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns whether the buffer has only samples in the middle of a burst.
    pub fn is_plain(&self) -> bool {
        self.marks == 0
    }

    /// Returns the samples dropped so far, by [`TxFifo::flush`] and by [`TxFifo::note_flushed`].
    pub fn flushed_samples(&self) -> u64 {
        self.flushed_samples
    }

    /// Returns whether there is space for a packet.
    pub fn has_room(&self, flow_bytes: usize) -> bool {
        self.used_bytes + flow_bytes <= self.size.bytes && self.entries.len() < self.size.packets
    }

    fn push(&mut self, entry: QueuedPacket) {
        self.used_bytes += entry.flow_bytes;
        self.marks += usize::from(entry.is_mark());
        self.entries.push_back(entry);
    }

    /// Stores samples at a free place, which always exists: see the type.
    fn store(&mut self, samples: &[Sc16]) -> usize {
        if self.ring.is_empty() {
            return 0;
        }
        // From the start if possible: a short queue then stays in the cache.
        if self.entries.is_empty() || self.write + samples.len() > self.ring.len() {
            self.write = 0;
        }
        let place = self.write;
        self.write += samples.len();
        self.ring[place..self.write].copy_from_slice(samples);
        place
    }
}

impl QueuedPacket {
    fn is_mark(&self) -> bool {
        if self.gap.is_some() {
            return true;
        }
        match self.what {
            Queued::Samples(packet) => packet.eob,
            Queued::Command(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_wire::chdr::PacketType;
    use proptest::prelude::*;

    fn packet(samples: u64) -> TxPacket {
        TxPacket { arrived: 0, timestamp: Some(5), gap: None, samples, eob: false }
    }

    fn values(first: u32, count: usize) -> Vec<Sc16> {
        (first..).take(count).map(u32::to_le_bytes).collect()
    }

    #[test]
    fn bytes_and_packets_are_bounded_apart() {
        let mut fifo = TxFifo::new(FifoSize { bytes: 100, packets: 3 }, false);
        assert!(fifo.push_samples(packet(21), 92, &values(0, 21)));
        assert!(!fifo.push_samples(packet(1), 16, &values(0, 1)), "no bytes left");
        assert!(fifo.push_command(CommandRepr::default(), None, 8));
        fifo.flush();
        assert_eq!((fifo.flushed_samples(), fifo.samples()), (21, 0));
        for _ in 0..3 {
            assert!(fifo.push_samples(packet(0), 8, &[]));
        }
        assert!(!fifo.push_samples(packet(0), 8, &[]), "no packets left");
    }

    #[test]
    fn ends_of_bursts_and_commands_are_marks() {
        let mut fifo = TxFifo::new(FifoSize { bytes: 1000, packets: 9 }, false);
        fifo.push_samples(packet(2), 16, &values(0, 2));
        assert!(fifo.is_plain());
        fifo.push_samples(TxPacket { eob: true, ..packet(2) }, 16, &values(0, 2));
        fifo.push_command(CommandRepr::default(), None, 24);
        for plain in [false, false, true] {
            assert_eq!(fifo.is_plain(), plain);
            fifo.pop();
            fifo.pop();
        }
    }

    #[test]
    fn a_gap_is_a_mark_until_it_is_told() {
        let mut fifo = TxFifo::new(FifoSize { bytes: 1000, packets: 9 }, false);
        let gap = SequenceGap { kind: PacketType::Data, expected: 1, actual: 3 };
        fifo.push_samples(TxPacket { gap: Some(gap), ..packet(2) }, 16, &values(0, 2));
        fifo.push_command(CommandRepr::default(), Some(gap), 24);
        assert_eq!((fifo.take_gap(), fifo.take_gap(), fifo.is_plain()), (Some(gap), None, false));
        fifo.pop();
        assert_eq!((fifo.take_gap(), fifo.take_gap(), fifo.is_plain()), (Some(gap), None, false));
        fifo.pop();
        assert!(fifo.is_plain() && fifo.take_gap().is_none());
    }

    proptest! {
        /// Samples that are pushed and taken in any pieces have the same order.
        #[test]
        fn samples_come_out_as_they_went_in(
            steps in prop::collection::vec((0usize..400, 0u64..500), 1..300),
        ) {
            let mut fifo = TxFifo::new(FifoSize { bytes: 4096, packets: 64 }, true);
            let (mut put, mut got) = (0u32, 0u32);
            for (count, take) in steps {
                let flow_bytes = 16 + (4 * count).next_multiple_of(8);
                if fifo.push_samples(packet(count as u64), flow_bytes, &values(put, count)) {
                    put += count as u32;
                }
                let mut take = take;
                while let Some(Queued::Samples(head)) = fifo.head() {
                    let now = head.samples.min(take);
                    for sample in fifo.head_samples(now) {
                        prop_assert_eq!(u32::from_le_bytes(*sample), got);
                        got += 1;
                    }
                    fifo.advance(now);
                    if now < head.samples {
                        break;
                    }
                    prop_assert_eq!(fifo.pop().map(|(_, left)| left), Some(0));
                    take -= now;
                }
                prop_assert_eq!(fifo.samples(), u64::from(put - got));
            }
        }
    }
}
