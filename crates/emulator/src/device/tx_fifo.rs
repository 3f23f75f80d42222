//! Packets from the host: those in the buffer of their endpoint, and behind it those in the buffers
//! of the blocks on the way.

use crate::antenna::Sc16;
use millstream_wire::chdr::{MAX_LEN, PacketType, SC16_LEN};
use millstream_wire::stream::CommandRepr;
use std::collections::VecDeque;

/// The samples of the largest possible packet.
const PACKET_SAMPLES_MAX: usize = MAX_LEN / SC16_LEN;

/// The capacity of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FifoSize {
    /// Bytes of packets, header included, each rounded up to whole CHDR words.
    pub bytes: usize,
    /// Bytes of the buffers behind it, in the blocks on the way.
    pub behind_bytes: usize,
    /// Packets, without those in the buffers behind it.
    pub packets: usize,
}

/// A packet of samples, or its rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TxPacket {
    /// The tick of its arrival.
    pub arrived: u64,
    /// The time of its first sample.
    pub timestamp: Option<u64>,
    pub samples: u64,
    /// Its last sample ends a burst.
    pub eob: bool,
}

/// The packet at the output of an endpoint's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// Samples, with the kind of their packet and its number; those within the device have none.
    Samples { number: Option<(PacketType, u16)> },
    /// A stream command with its number; `None` for an operation that does not exist.
    Command { seq: u16, command: Option<CommandRepr> },
}

/// A packet in the buffer of an endpoint.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    what: Leaving,
    flow_bytes: usize,
    /// Its samples; those of a command are none.
    passed: Passed,
}

/// A packet behind that buffer, its size in flow control, and the place of its samples.
#[derive(Debug, Clone, Copy)]
struct Passed {
    packet: TxPacket,
    flow_bytes: usize,
    place: usize,
}

/// A buffer of bytes, as in hardware: headers and commands take space too. Behind it lie those of
/// the blocks on the way.
///
/// The host's window is that of the endpoint's buffer: what has passed it has been consumed,
/// although its samples may still wait for their time.
///
/// Everything is allocated at once. The samples of a packet are contiguous: if the ring has no
/// space for them before its end they are stored at its beginning, and the ring is longer than the
/// buffers by the largest packet to compensate for that.
#[derive(Debug)]
pub(crate) struct TxFifo {
    size: FifoSize,
    waiting: VecDeque<Waiting>,
    passed: VecDeque<Passed>,
    /// Empty when the samples' values are not needed: then only their number is stored.
    ring: Box<[Sc16]>,
    write: usize,
    waiting_bytes: usize,
    passed_bytes: usize,
    samples: u64,
    /// Packets with an event other than sent samples.
    marks: usize,
    flushed_samples: u64,
}

impl TxFifo {
    /// Returns an empty buffer, which stores the samples' values if `keep` is set.
    pub fn new(size: FifoSize, keep: bool) -> Self {
        let bytes = size.bytes + size.behind_bytes;
        let ring = if keep { bytes / SC16_LEN + PACKET_SAMPLES_MAX } else { 0 };
        Self {
            size,
            waiting: VecDeque::with_capacity(size.packets),
            // A packet has a word or more.
            passed: VecDeque::with_capacity(1 + size.behind_bytes / 8),
            ring: vec![[0; SC16_LEN]; ring].into(),
            write: 0,
            waiting_bytes: 0,
            passed_bytes: 0,
            samples: 0,
            marks: 0,
            flushed_samples: 0,
        }
    }

    /// Queues `packet`, which has this kind and number, with the samples in `payload`; returns
    /// false when there is no space.
    pub fn push_samples(
        &mut self,
        packet: TxPacket,
        number: Option<(PacketType, u16)>,
        flow_bytes: usize,
        payload: &[Sc16],
    ) -> bool {
        debug_assert_eq!(packet.samples, payload.len() as u64);
        if !self.has_room(flow_bytes) {
            return false;
        }
        let place = self.store(payload);
        self.samples += packet.samples;
        let passed = Passed { packet, flow_bytes, place };
        self.push(Waiting { what: Leaving::Samples { number }, flow_bytes, passed });
        true
    }

    /// Queues a stream command, which stays in its place among the packets; `None` for one whose
    /// operation does not exist. Returns false when there is no space.
    pub fn push_command(
        &mut self,
        seq: u16,
        command: Option<CommandRepr>,
        flow_bytes: usize,
    ) -> bool {
        let fits = self.has_room(flow_bytes);
        if fits {
            let packet = TxPacket { arrived: 0, timestamp: None, samples: 0, eob: false };
            let passed = Passed { packet, flow_bytes: 0, place: 0 };
            self.push(Waiting { what: Leaving::Command { seq, command }, flow_bytes, passed });
        }
        fits
    }

    /// Removes the oldest packet in the endpoint's buffer; returns it with its bytes in flow
    /// control. Samples are then in the buffers behind it, for which they wait.
    pub fn pass(&mut self) -> Option<(Leaving, usize)> {
        let &Waiting { what, flow_bytes, passed } = self.waiting.front()?;
        match what {
            Leaving::Command { .. } => self.marks -= 1,
            Leaving::Samples { .. } => {
                // A longer packet passes alone.
                let bytes = self.passed_bytes + flow_bytes;
                if bytes > self.size.behind_bytes && !self.passed.is_empty() {
                    return None;
                }
                self.passed_bytes = bytes;
                self.passed.push_back(passed);
            }
        }
        self.waiting_bytes -= flow_bytes;
        self.waiting.pop_front();
        Some((what, flow_bytes))
    }

    /// Returns the oldest packet behind the endpoint's buffer.
    pub fn head(&self) -> Option<TxPacket> {
        self.passed.front().map(|passed| passed.packet)
    }

    /// Returns the first `count` samples of the head; an empty slice when values are not stored.
    pub fn head_samples(&self, count: u64) -> &[Sc16] {
        let Some(head) = self.passed.front().filter(|_| !self.ring.is_empty()) else {
            return &[];
        };
        &self.ring[head.place..][..count as usize]
    }

    /// Removes the first `count` samples of the head. The rest follows without a gap, so its time
    /// is no longer used.
    pub fn advance(&mut self, count: u64) {
        let Some(head) = self.passed.front_mut() else { return };
        head.packet.samples -= count;
        head.packet.timestamp = None;
        head.place += count as usize;
        self.samples -= count;
    }

    /// Removes the head; returns the samples that were left.
    pub fn pop(&mut self) -> u64 {
        let Some(Passed { packet, flow_bytes, .. }) = self.passed.pop_front() else { return 0 };
        self.samples -= packet.samples;
        self.passed_bytes -= flow_bytes;
        self.marks -= usize::from(packet.eob);
        packet.samples
    }

    /// Drops everything.
    pub fn flush(&mut self) {
        self.flushed_samples += self.samples;
        self.waiting.clear();
        self.passed.clear();
        (self.waiting_bytes, self.passed_bytes, self.samples, self.marks) = (0, 0, 0, 0);
    }

    /// Counts samples that were popped to be dropped.
    pub fn note_flushed(&mut self, samples: u64) {
        self.flushed_samples += samples;
    }

    /// Returns the samples that fit the endpoint's buffer, without headers.
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
        let packets = self.waiting.len();
        self.waiting_bytes + flow_bytes <= self.size.bytes && packets < self.size.packets
    }

    fn push(&mut self, entry: Waiting) {
        self.waiting_bytes += entry.flow_bytes;
        let is_command = matches!(entry.what, Leaving::Command { .. });
        self.marks += usize::from(is_command || entry.passed.packet.eob);
        self.waiting.push_back(entry);
    }

    /// Stores samples at a free place, which always exists: see the type.
    fn store(&mut self, samples: &[Sc16]) -> usize {
        if self.ring.is_empty() {
            return 0;
        }
        // From the start if possible: a short queue then stays in the cache.
        let is_empty = self.waiting.is_empty() && self.passed.is_empty();
        if is_empty || self.write + samples.len() > self.ring.len() {
            self.write = 0;
        }
        let place = self.write;
        self.write += samples.len();
        self.ring[place..self.write].copy_from_slice(samples);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(samples: u64) -> TxPacket {
        TxPacket { arrived: 0, timestamp: Some(5), samples, eob: false }
    }

    fn fifo(bytes: usize, behind_bytes: usize, packets: usize, keep: bool) -> TxFifo {
        TxFifo::new(FifoSize { bytes, behind_bytes, packets }, keep)
    }

    fn number(seq: u16) -> Option<(PacketType, u16)> {
        Some((PacketType::TimedData, seq))
    }

    fn values(first: u32, count: usize) -> Vec<Sc16> {
        (first..).take(count).map(u32::to_le_bytes).collect()
    }

    #[test]
    fn bytes_and_packets_are_bounded_apart() {
        let mut fifo = fifo(100, 0, 3, false);
        assert!(fifo.push_samples(packet(21), number(0), 92, &values(0, 21)));
        assert!(!fifo.push_samples(packet(1), number(1), 16, &values(0, 1)), "no bytes left");
        assert!(fifo.push_command(0, None, 8));
        fifo.flush();
        assert_eq!((fifo.flushed_samples(), fifo.samples()), (21, 0));
        for _ in 0..3 {
            assert!(fifo.push_samples(packet(0), None, 8, &[]));
        }
        assert!(!fifo.push_samples(packet(0), None, 8, &[]), "no packets left");
    }

    #[test]
    fn ends_of_bursts_and_commands_are_marks() {
        let mut fifo = fifo(1000, 100, 9, false);
        fifo.push_samples(packet(2), number(0), 16, &values(0, 2));
        assert!(fifo.is_plain());
        fifo.push_samples(TxPacket { eob: true, ..packet(2) }, number(1), 16, &values(0, 2));
        fifo.push_command(0, None, 24);
        while fifo.pass().is_some() {}
        for plain in [false, false, true] {
            assert_eq!(fifo.is_plain(), plain);
            fifo.pop();
        }
    }

    #[test]
    fn a_packet_passes_when_there_is_room_behind_the_buffer_and_a_command_at_its_place() {
        let mut fifo = fifo(1000, 40, 9, false);
        let data = |seq| Leaving::Samples { number: number(seq) };
        for seq in 0..3 {
            fifo.push_samples(packet(2), number(seq), 24, &values(0, 2));
            fifo.push_command(seq, None, 24);
        }
        let command = |seq| Leaving::Command { seq, command: None };
        assert_eq!(fifo.pass(), Some((data(0), 24)));
        assert_eq!((fifo.pass(), fifo.pass()), (Some((command(0), 24)), None));
        for seq in 1..3 {
            fifo.pop();
            assert_eq!(fifo.pass(), Some((data(seq), 24)));
            assert_eq!((fifo.pass(), fifo.pass()), (Some((command(seq), 24)), None));
        }
        fifo.pop();
        fifo.push_samples(packet(20), number(3), 96, &values(0, 20));
        assert_eq!(fifo.pass(), Some((data(3), 96)), "alone any packet passes");
    }

    proptest! {
        /// Samples that are pushed and taken in any pieces have the same order.
        #[test]
        fn samples_come_out_as_they_went_in(
            steps in prop::collection::vec((0usize..400, 0u64..500), 1..300),
        ) {
            let mut fifo = fifo(4096, 2048, 64, true);
            let (mut put, mut got) = (0u32, 0u32);
            for (count, take) in steps {
                let flow_bytes = 16 + (4 * count).next_multiple_of(8);
                if fifo.push_samples(packet(count as u64), None, flow_bytes, &values(put, count)) {
                    put += count as u32;
                }
                while fifo.pass().is_some() {}
                let mut take = take;
                while let Some(head) = fifo.head() {
                    let now = head.samples.min(take);
                    for sample in fifo.head_samples(now) {
                        prop_assert_eq!(u32::from_le_bytes(*sample), got);
                        got += 1;
                    }
                    fifo.advance(now);
                    if now < head.samples {
                        break;
                    }
                    prop_assert_eq!(fifo.pop(), 0);
                    while fifo.pass().is_some() {}
                    take -= now;
                }
                prop_assert_eq!(fifo.samples(), u64::from(put - got));
            }
        }
    }
}
