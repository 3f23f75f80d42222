//! The train: packets back to back, as one system call sends them.

use millstream_wire::chdr::{DataRepr, SC16_LEN};
use millstream_wire::{Epid, Width};

/// Most bytes of a train: one UDP payload over IPv4, which is what the kernel segments at a time.
const TRAIN_BYTES_MAX: usize = 65_507;

/// Most packets in it: what every kernel with `UDP_SEGMENT` takes.
const TRAIN_PACKETS_MAX: usize = 64;

/// Packets under construction. Samples are converted straight to where they leave from.
///
/// A packet that is not full stays where it is when those before it leave; the next train begins
/// with it. At the end of the buffer the train starts over.
#[derive(Debug)]
pub(super) struct Train {
    buffer: Box<[u8]>,
    width: Width,
    samples_per_packet: usize,
    /// Bytes before the samples of each packet, and whether time is among them.
    header_bytes: usize,
    segment_bytes: usize,
    slots: usize,
    /// The first packet that has not left, and the one under construction.
    first: usize,
    current: usize,
    /// Samples in the current packet.
    filled: usize,
    /// Bytes that the last complete packet is short of a full one.
    short_bytes: usize,
}

impl Train {
    pub fn new(width: Width, samples_per_packet: usize) -> Self {
        let mut train = Self {
            buffer: Box::default(),
            width,
            samples_per_packet,
            header_bytes: 0,
            segment_bytes: 0,
            slots: 0,
            first: 0,
            current: 0,
            filled: 0,
            short_bytes: 0,
        };
        train.shape(true);
        let bytes = (TRAIN_PACKETS_MAX * train.segment_bytes).min(TRAIN_BYTES_MAX);
        train.buffer = vec![0; bytes.max(train.segment_bytes)].into();
        train.shape(true);
        train
    }

    /// Whether the packets to come carry time. Only while nothing is in the train.
    pub fn shape(&mut self, timed: bool) {
        debug_assert!(self.is_empty() && self.filled == 0);
        let repr = DataRepr { timestamp: timed.then_some(0), ..DataRepr::default() };
        self.header_bytes = repr.header_len(self.width);
        self.segment_bytes = self.header_bytes + self.samples_per_packet * SC16_LEN;
        self.slots = (self.buffer.len() / self.segment_bytes).min(TRAIN_PACKETS_MAX);
        (self.first, self.current) = (0, 0);
    }

    /// Bytes of a full packet.
    pub fn segment_bytes(&self) -> usize {
        self.segment_bytes
    }

    /// Samples in the packet under construction.
    pub fn filled(&self) -> usize {
        self.filled
    }

    /// Complete packets that have not left.
    pub fn packets(&self) -> usize {
        self.current - self.first
    }

    /// Nothing is complete.
    pub fn is_empty(&self) -> bool {
        self.packets() == 0
    }

    /// No other packet can be begun before those that are complete have left.
    pub fn is_full(&self) -> bool {
        self.current == self.slots || self.short_bytes > 0
    }

    /// The place of the samples that the current packet still wants.
    pub fn space(&mut self) -> &mut [u8] {
        let at = self.current * self.segment_bytes;
        let from = at + self.header_bytes + self.filled * SC16_LEN;
        &mut self.buffer[from..at + self.segment_bytes]
    }

    /// Samples were written to [`Train::space`]. True when the packet is full.
    pub fn fill(&mut self, samples: usize) -> bool {
        self.filled += samples;
        debug_assert!(self.filled <= self.samples_per_packet);
        self.filled == self.samples_per_packet
    }

    /// Completes the current packet with its header. Its length in bytes.
    pub fn complete(&mut self, dst_epid: Epid, seq: u16, ticks: Option<u64>, eob: bool) -> usize {
        let payload_len = self.filled * SC16_LEN;
        let repr = DataRepr { dst_epid, seq, timestamp: ticks, eob, eov: false, payload_len };
        let at = self.current * self.segment_bytes;
        let header = repr.emit(self.width, &mut self.buffer[at..]);
        let header_bytes = header.expect("a packet is no longer than its length field can say");
        debug_assert_eq!(header_bytes, self.header_bytes);
        let length = header_bytes + payload_len;
        self.short_bytes = self.segment_bytes - length;
        self.current += 1;
        self.filled = 0;
        length
    }

    /// The complete packets that have not left; afterwards they have.
    pub fn depart(&mut self) -> &[u8] {
        let from = self.first * self.segment_bytes;
        let to = self.current * self.segment_bytes - self.short_bytes;
        self.first = self.current;
        self.short_bytes = 0;
        if self.filled == 0 {
            (self.first, self.current) = (0, 0);
        }
        &self.buffer[from..to]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(train: &mut Train, value: u8, samples: usize) -> bool {
        train.space()[..samples * 4].fill(value);
        train.fill(samples)
    }

    #[test]
    fn packets_lie_back_to_back_and_only_the_last_is_short() {
        let mut train = Train::new(Width::W64, 10);
        assert_eq!(train.segment_bytes(), 56);
        for seq in 0..2 {
            assert!(put(&mut train, 7, 10));
            assert_eq!(train.complete(Epid(2), seq, Some(100), false), 56);
            assert!(!train.is_full());
        }
        assert!(!put(&mut train, 8, 3));
        assert_eq!(train.complete(Epid(2), 2, Some(120), true), 28);
        assert!(train.is_full(), "nothing can follow a short one");
        assert_eq!(train.packets(), 3);
        let bytes = train.depart();
        assert_eq!(bytes.len(), 56 + 56 + 28);
        assert_eq!((bytes[2], bytes[58], bytes[114], bytes[115]), (56, 56, 28, 0));
        assert!(train.is_empty() && !train.is_full());
    }

    #[test]
    fn an_unfinished_packet_stays_in_its_place() {
        let mut train = Train::new(Width::W64, 10);
        train.shape(false);
        assert_eq!(train.segment_bytes(), 48);
        put(&mut train, 1, 10);
        train.complete(Epid(2), 0, None, false);
        put(&mut train, 2, 4);
        assert_eq!(train.depart().len(), 48);
        assert_eq!((train.filled(), train.packets()), (4, 0));
        assert!(put(&mut train, 3, 6));
        train.complete(Epid(2), 1, None, false);
        let bytes = train.depart();
        assert_eq!((bytes.len(), bytes[8], bytes[8 + 16]), (48, 2, 3));
        assert_eq!(train.current, 0);
    }

    #[test]
    fn a_train_is_no_longer_than_one_call_can_send() {
        for samples in [1, 10, 362, 2000, 5000, 16_000] {
            let mut train = Train::new(Width::W64, samples);
            let mut packets = 0;
            while !train.is_full() {
                put(&mut train, 0, samples);
                train.complete(Epid(2), 0, Some(0), false);
                packets += 1;
            }
            assert!((1..=TRAIN_PACKETS_MAX).contains(&packets));
            let length = train.depart().len();
            assert!(length <= TRAIN_BYTES_MAX && length == packets * (16 + samples * 4));
            assert!(packets == TRAIN_PACKETS_MAX || length + 16 + samples * 4 > TRAIN_BYTES_MAX);
        }
    }
}
