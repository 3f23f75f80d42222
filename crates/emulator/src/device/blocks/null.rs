//! The null source and sink.

use super::{BlockPacket, StreamBlock};
use crate::antenna::{Sc16, sc16};
use crate::generation::Generation;
use millstream_wire::chdr::{MAX_LEN, Width};
use millstream_wire::regs::null::{self as regs, LineSize};

const ITEM_BITS: u8 = 32;
const ITEM_BYTES: usize = size_of::<Sc16>();

/// The largest packet, bytes.
const PACKET_BYTES_MAX: usize = (8 << 10) - 64;

const PACKETS_HI: u32 = regs::PACKETS + 4;

/// The places of lines and packets in the counters.
const SINK: usize = 0;
const SOURCE: usize = 2;
const LOOP: usize = 4;

/// The block: input 0 ends in it, output 0 begins in it, and input 1 continues to output 1.
#[derive(Debug)]
pub(crate) struct NullSrcSink {
    items_per_line: usize,
    registers: [u32; 4],
    on: bool,
    /// The number of packets of a finite source, in two words.
    packets: [u32; 2],
    /// The packets that a finite source has still to make.
    left: Option<u64>,
    /// The source has been stopped: its next packet ends the burst.
    ends: bool,
    /// The number of the next line of the source.
    line: u16,
    /// Lines and packets of sink, source and loop.
    counters: [u64; 6],
    /// What came by input 1.
    looped: Vec<Sc16>,
}

impl NullSrcSink {
    /// Returns a block that makes nothing, with lines of this width.
    pub fn new(width: Width) -> Self {
        Self {
            items_per_line: width.bytes() / ITEM_BYTES,
            registers: [0; 4],
            on: false,
            packets: [0; 2],
            left: None,
            ends: false,
            line: 0,
            counters: [0; 6],
            looped: Vec::with_capacity(MAX_LEN / ITEM_BYTES),
        }
    }

    fn line_bytes(&self) -> usize {
        self.items_per_line * ITEM_BYTES
    }

    /// Returns the lines of a packet of the source behind its header, which is one more.
    fn lines(&self) -> usize {
        let lines =
            self.registers[regs::PACKET_LINES_LESS_2 as usize / 4] & regs::PACKET_LINES_MASK;
        (lines as usize + 1).min(PACKET_BYTES_MAX / self.line_bytes())
    }

    /// Returns the bytes behind the header that it announces.
    fn announced_bytes(&self) -> usize {
        let bytes = self.registers[regs::PACKET_BYTES as usize / 4] as usize;
        let payload = bytes.min(PACKET_BYTES_MAX).saturating_sub(self.line_bytes());
        payload.next_multiple_of(ITEM_BYTES)
    }

    /// Counts a packet of so many items.
    fn count(&mut self, place: usize, items: usize) {
        self.counters[place] += items.div_ceil(self.items_per_line) as u64;
        self.counters[place + 1] += 1;
    }
}

impl StreamBlock for NullSrcSink {
    fn reset(&mut self) {
        self.stop();
        (self.registers, self.line, self.counters) = ([0; 4], 0, [0; 6]);
        (self.packets, self.left) = ([0; 2], None);
    }

    fn stop(&mut self) {
        (self.on, self.ends) = (false, false);
        self.looped.clear();
    }

    fn read(&self, address: u32, generation: &Generation) -> u32 {
        match address {
            // The finite mode is of UHD 4.10 and newer.
            regs::PACKETS..=PACKETS_HI if !generation.radio_map.has_features => 0,
            regs::CONTROL => {
                let on = if self.on { regs::RUN } else { 0 };
                let size = LineSize { items: self.items_per_line as u8, item_bits: ITEM_BITS };
                size.to_word().unwrap_or(0) | on
            }
            regs::PACKETS => self.packets[0],
            PACKETS_HI => self.packets[1],
            regs::SINK_COUNTERS.. => {
                let offset = address - regs::SINK_COUNTERS;
                let counter = self.counters.get(offset as usize / 8).copied().unwrap_or(0);
                (if offset % 8 < 4 { counter } else { counter >> 32 }) as u32
            }
            _ => self.registers[address as usize / 4],
        }
    }

    fn write(&mut self, address: u32, value: u32) {
        match address {
            regs::PACKETS => self.packets[0] = value,
            PACKETS_HI => self.packets[1] = value & (regs::PACKETS_MASK >> 32) as u32,
            _ => {}
        }
        let Some(register) = self.registers.get_mut(address as usize / 4) else { return };
        *register = value;
        if address == regs::CONTROL {
            let [low, high] = self.packets.map(u64::from);
            self.left = (value & regs::FINITE != 0).then_some(high << 32 | low);
            let on = value & regs::RUN != 0 && self.left != Some(0);
            self.ends = self.on && !on;
            self.on = on;
            if value & regs::CLEAR != 0 {
                (self.counters, self.line) = ([0; 6], 0);
            }
        }
    }

    /// As in hardware the length in the header is what the register says, and the lines are what
    /// the other one says: of too many the last ones are missing, and of too few there is no more.
    fn next_packet(&self, port: usize) -> Option<BlockPacket> {
        let (bytes, announced, eob) = match port {
            0 if self.on || self.ends => {
                let announced = self.announced_bytes();
                let eob = self.ends || self.left == Some(1);
                (announced.min(self.lines() * self.line_bytes()), Some(announced), eob)
            }
            1 => (self.looped.len() * ITEM_BYTES, None, false),
            _ => (0, None, false),
        };
        (bytes > 0).then_some(BlockPacket { bytes, announced, timestamp: None, eob })
    }

    fn fill(&mut self, port: usize, at: usize, out: &mut [Sc16]) {
        let first = at / ITEM_BYTES;
        if port == 1 {
            let from = self.looped.get(first..).unwrap_or_default();
            out.iter_mut().zip(from).for_each(|(out, item)| *out = *item);
            return;
        }
        for (item, index) in out.iter_mut().zip(first..) {
            let line = self.line.wrapping_add((index / self.items_per_line) as u16);
            *item = sc16(!line as i16, line as i16);
        }
    }

    fn sent(&mut self, port: usize) {
        if port == 1 {
            self.count(LOOP, self.looped.len());
            self.looped.clear();
        } else {
            let lines = self.lines();
            self.count(SOURCE, lines * self.items_per_line);
            self.line = self.line.wrapping_add(lines as u16);
            self.ends = false;
            if let Some(left) = &mut self.left {
                *left = left.saturating_sub(1);
                self.on &= *left > 0;
            }
        }
    }

    /// Takes items: at input 0 all, at input 1 those of a packet while none is looped.
    fn take(&mut self, port: usize, items: &[Sc16]) -> usize {
        if port == 0 {
            self.count(SINK, items.len());
        } else if self.looped.is_empty() {
            self.looped.extend_from_slice(items);
        } else {
            return 0;
        }
        items.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UhdGeneration;

    fn read(block: &NullSrcSink, address: u32) -> u32 {
        block.read(address, UhdGeneration::V4_10.row())
    }

    fn sent(block: &mut NullSrcSink, port: usize) -> Vec<(u16, u16)> {
        let packet = block.next_packet(port).unwrap();
        let mut out = vec![[0; 4]; packet.bytes / 4];
        let (first, rest) = out.split_at_mut(1);
        block.fill(port, 0, first);
        block.fill(port, 4, rest);
        block.sent(port);
        let parts = |[a, b, c, d]: Sc16| (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        out.into_iter().map(parts).collect()
    }

    /// As in the recorded exchange 70.
    #[test]
    fn a_packet_has_the_lines_of_one_register_and_the_length_of_the_other() {
        for (lines, length, bytes) in [(8, 80, 72), (10, 80, 72), (10, 88, 80), (6, 80, 56)] {
            let mut block = NullSrcSink::new(Width::W64);
            assert_eq!(block.next_packet(0), None);
            block.write(regs::PACKET_LINES_LESS_2, lines);
            block.write(regs::PACKET_BYTES, length);
            block.write(regs::CONTROL, regs::RUN);
            assert_eq!(read(&block, regs::CONTROL), 2 << 24 | 32 << 16 | 2);
            for number in 0..3 {
                let packet = block.next_packet(0).unwrap();
                let announced = Some(length as usize - 8);
                assert_eq!((packet.bytes, packet.announced, packet.eob), (bytes, announced, false));
                let first = number * (lines as u16 + 1);
                let want =
                    (0..bytes as u16 / 4).map(|item| (!(first + item / 2), first + item / 2));
                assert_eq!(sent(&mut block, 0), want.collect::<Vec<_>>());
            }
            block.write(regs::CONTROL, 0);
            assert!(block.next_packet(0).unwrap().eob, "one more at the stop");
            sent(&mut block, 0);
            assert_eq!(block.next_packet(0), None);
            assert_eq!((read(&block, 0x20), read(&block, 0x28)), (4 * (lines + 1), 4));
            block.write(regs::CONTROL, regs::CLEAR);
            block.write(regs::CONTROL, regs::RUN);
            assert_eq!((read(&block, 0x20), sent(&mut block, 0)[0]), (0, (0xffff, 0)));
        }
    }

    /// UHD 4.10 and later ones ask for a number of packets.
    #[test]
    fn a_finite_source_ends_after_its_packets_and_can_begin_again() {
        let mut block = NullSrcSink::new(Width::W64);
        block.write(regs::PACKET_LINES_LESS_2, 7);
        block.write(regs::PACKET_BYTES, 72);
        block.write(regs::PACKETS, 3);
        for _ in 0..2 {
            block.write(regs::CONTROL, regs::RUN | regs::FINITE);
            let packets = std::iter::from_fn(|| {
                let eob = block.next_packet(0)?.eob;
                Some((sent(&mut block, 0).len(), eob))
            });
            let want = [(16, false), (16, false), (16, true)];
            assert_eq!(packets.collect::<Vec<_>>(), want);
            assert_eq!(read(&block, regs::CONTROL) & regs::RUN, 0);
        }
        block.write(regs::PACKETS, 0);
        block.write(regs::CONTROL, regs::RUN | regs::FINITE);
        assert_eq!(block.next_packet(0), None);
        block.write(PACKETS_HI, u32::MAX);
        assert_eq!((read(&block, regs::PACKETS), read(&block, PACKETS_HI)), (0, 0xffff));
        block.write(regs::CONTROL, regs::RUN | regs::FINITE);
        assert!(block.next_packet(0).is_some());
    }

    #[test]
    fn the_sink_takes_everything_and_the_loop_returns_it() {
        let mut block = NullSrcSink::new(Width::W64);
        assert_eq!(block.take(0, &[[0; 4]; 5]), 5);
        assert_eq!((read(&block, 0x10), read(&block, 0x18)), (3, 1));
        assert_eq!(block.take(1, &[[1, 0, 2, 0]; 3]), 3);
        assert_eq!(block.take(1, &[[0; 4]; 3]), 0, "the last packet is still there");
        assert_eq!(sent(&mut block, 1), [(1, 2); 3]);
        assert_eq!((read(&block, 0x30), read(&block, 0x38)), (2, 1));
        assert_eq!(block.next_packet(1), None);
    }

    #[test]
    fn any_register_value_makes_a_packet_that_fits_or_none() {
        for (bytes, lines) in [(0, 0), (3, 0), (12, 1), (u32::MAX, u32::MAX), (0, u32::MAX)] {
            let mut block = NullSrcSink::new(Width::W64);
            block.write(regs::CONTROL, regs::RUN);
            block.write(regs::PACKET_BYTES, bytes);
            block.write(regs::PACKET_LINES_LESS_2, lines);
            let packet = block.next_packet(0);
            assert_eq!(packet.is_none(), bytes < 8);
            let fits = |bytes: usize| bytes % 4 == 0 && (4..=8192).contains(&bytes);
            assert!(packet.is_none_or(|packet| fits(packet.bytes)));
        }
        assert_eq!(read(&NullSrcSink::new(Width::W64), 0xffff_fffc), 0);
    }
}
