//! The replay block: memory that records one stream and plays another.

use super::{BlockPacket, StreamBlock};
use crate::antenna::Sc16;
use crate::generation::Generation;
use millstream_dsp::chunks::Chunks;
use millstream_wire::regs::replay::{
    self as regs, MemorySize, PLAY_POSITION, RECORD_FULLNESS, RECORD_POSITION, command,
};
use std::collections::VecDeque;

/// Log2 of the bytes of the memory, which all ports share.
const MEMORY_LOG2: u16 = 26;
const MEMORY_BYTES: u64 = 1 << MEMORY_LOG2;
/// Bits and bytes of a word of it.
const WORD_BITS: u16 = 64;
const WORD_BYTES: u64 = 8;
/// The commands that wait at most.
const COMMANDS_MAX: usize = 32;
const ITEM_BYTES: usize = size_of::<Sc16>();

/// Words of a packet before a host sets them.
const PACKET_WORDS_INITIAL: u32 = 160;

const RECORD_FULLNESS_HI: u32 = RECORD_FULLNESS + 4;
const RECORD_POSITION_HI: u32 = RECORD_POSITION + 4;
const PLAY_POSITION_HI: u32 = PLAY_POSITION + 4;

/// The block.
#[derive(Debug)]
pub(crate) struct Replay {
    memory: Box<[u8]>,
    ports: Box<[ReplayPort]>,
}

/// One port: a recording and a player.
#[derive(Debug)]
struct ReplayPort {
    /// The written values, by offset / 4.
    registers: [u32; regs::BANK as usize / 4],
    /// Bytes recorded since the last restart.
    recorded: u64,
    plays: VecDeque<Play>,
    /// Bytes that the first play has sent.
    played: u64,
}

/// A command to play.
#[derive(Debug, Clone, Copy)]
struct Play {
    base: u64,
    /// Playing wraps around behind this number of bytes.
    size: u64,
    /// The bytes to play; `None` without an end.
    bytes: Option<u64>,
    time: Option<u64>,
    /// It plays what is being recorded, and does not overtake it.
    follows: bool,
    /// The last packet ends a burst.
    has_eob: bool,
}

impl Replay {
    /// Returns a block with empty memory.
    pub fn new(ports: usize) -> Self {
        Self {
            // Zeros: the system gives such memory when it is used.
            memory: vec![0; MEMORY_BYTES as usize].into(),
            ports: (0..ports).map(|_| ReplayPort::new()).collect(),
        }
    }
}

impl StreamBlock for Replay {
    fn reset(&mut self) {
        self.ports.iter_mut().for_each(|port| *port = ReplayPort::new());
    }

    fn stop(&mut self) {
        self.ports.iter_mut().for_each(|port| port.command(command::STOP));
    }

    fn read(&self, address: u32, generation: &Generation) -> u32 {
        if address == regs::COMPAT {
            return generation.replay_compat;
        }
        let Some(port) = self.ports.get((address / regs::BANK) as usize) else { return 0 };
        let offset = address % regs::BANK;
        let wide = |at: u32, value: u64| (value >> (8 * (offset - at))) as u32;
        let recording = port.wide(regs::RECORD_BASE).wrapping_add(port.recorded);
        match offset {
            regs::MEMORY => {
                let size = MemorySize { word_bits: WORD_BITS, bytes_log2: MEMORY_LOG2 };
                size.to_word().unwrap_or(0)
            }
            RECORD_FULLNESS | RECORD_FULLNESS_HI => wide(RECORD_FULLNESS, port.recorded),
            RECORD_POSITION | RECORD_POSITION_HI => wide(RECORD_POSITION, recording),
            PLAY_POSITION | PLAY_POSITION_HI => wide(PLAY_POSITION, port.play_position()),
            regs::COMMANDS_FREE => (COMMANDS_MAX - port.plays.len()) as u32,
            offset => port.register(offset),
        }
    }

    fn write(&mut self, address: u32, value: u32) {
        let Some(port) = self.ports.get_mut((address / regs::BANK) as usize) else { return };
        let offset = address % regs::BANK;
        port.registers[offset as usize / 4] = value;
        match offset {
            regs::RECORD_RESTART => port.recorded = 0,
            regs::PLAY_COMMAND => port.command(value),
            _ => {}
        }
    }

    fn next_packet(&self, port: usize) -> Option<BlockPacket> {
        self.ports[port].next_packet()
    }

    fn fill(&mut self, port: usize, at: usize, out: &mut [Sc16]) {
        let port = &self.ports[port];
        let Some(play) = port.plays.front() else { return out.fill(Sc16::default()) };
        let first = (play.base + port.played % play.size + at as u64) as usize;
        let bytes = self.memory.get(first..first + out.len() * ITEM_BYTES).unwrap_or_default();
        out.iter_mut().zip(bytes.in_chunks().0).for_each(|(item, bytes)| *item = *bytes);
    }

    fn sent(&mut self, port: usize) {
        let port = &mut self.ports[port];
        let Some(packet) = port.next_packet() else { return };
        port.played += packet.bytes as u64;
        if port.plays.front().is_some_and(|play| play.bytes == Some(port.played)) {
            port.plays.pop_front();
            port.played = 0;
        }
    }

    /// Records items until the space for them is full.
    fn take(&mut self, port: usize, items: &[Sc16]) -> usize {
        let port = &mut self.ports[port];
        let size = port.wide(regs::RECORD_SIZE);
        let room = (size.saturating_sub(port.recorded) / ITEM_BYTES as u64) as usize;
        let count = room.min(items.len());
        let first = port.wide(regs::RECORD_BASE).saturating_add(port.recorded);
        let end = first.saturating_add((count * ITEM_BYTES) as u64);
        // Beyond the memory nothing is stored.
        if let Some(bytes) = self.memory.get_mut(first as usize..end as usize) {
            bytes.in_chunks_mut().0.iter_mut().zip(items).for_each(|(bytes, item)| *bytes = *item);
        }
        port.recorded += (count * ITEM_BYTES) as u64;
        count
    }
}

impl ReplayPort {
    fn new() -> Self {
        let mut registers = [0; regs::BANK as usize / 4];
        registers[regs::PACKET_WORDS as usize / 4] = PACKET_WORDS_INITIAL;
        registers[regs::ITEM_BYTES as usize / 4] = ITEM_BYTES as u32;
        let plays = VecDeque::with_capacity(COMMANDS_MAX);
        Self { registers, recorded: 0, plays, played: 0 }
    }

    fn register(&self, offset: u32) -> u32 {
        self.registers[offset as usize / 4]
    }

    /// Returns a pair of registers, the low half at `offset`.
    fn wide(&self, offset: u32) -> u64 {
        u64::from(self.register(offset)) | u64::from(self.register(offset + 4)) << 32
    }

    /// Executes a command; one without anything to play, or beyond the memory, has no effect, and
    /// so has one for which the queue has no place.
    fn command(&mut self, word: u32) {
        let bytes = match word & 3 {
            command::STOP => {
                self.plays.clear();
                self.played = 0;
                return;
            }
            command::FINITE => Some(self.wide(regs::PLAY_WORDS).saturating_mul(WORD_BYTES)),
            command::CONTINUOUS => None,
            _ => return,
        };
        let (base, size) = (self.wide(regs::PLAY_BASE), self.wide(regs::PLAY_SIZE));
        let time = (word & command::TIMED != 0).then(|| self.wide(regs::PLAY_TIME));
        let sound = size >= WORD_BYTES
            && base.checked_add(size).is_some_and(|end| end <= MEMORY_BYTES)
            && bytes != Some(0);
        let follows = word & command::FOLLOW != 0 && bytes.is_some();
        let has_eob = word & command::WITHOUT_EOB == 0;
        if sound && self.plays.len() < COMMANDS_MAX {
            self.plays.push_back(Play { base, size, bytes, time, follows, has_eob });
        }
    }

    fn next_packet(&self) -> Option<BlockPacket> {
        let play = self.plays.front()?;
        // A packet ends where playing wraps around.
        let to_wrap = play.size - self.played % play.size;
        let left = play.bytes.map_or(u64::MAX, |bytes| bytes - self.played);
        let most = u64::from(self.register(regs::PACKET_WORDS).clamp(1, 0xfff)) * WORD_BYTES;
        let bytes = most.min(to_wrap).min(left);
        if play.follows && self.played + bytes > self.recorded {
            return None;
        }
        let item = u64::from(self.register(regs::ITEM_BYTES).max(1));
        let timestamp = play.time.map(|time| time.wrapping_add(self.played / item));
        let eob = bytes == left && play.has_eob;
        Some(BlockPacket { bytes: bytes as usize, announced: None, timestamp, eob })
    }

    fn play_position(&self) -> u64 {
        match self.plays.front() {
            Some(play) => play.base + self.played % play.size,
            None => self.wide(regs::PLAY_BASE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UhdGeneration;

    fn read(block: &Replay, address: u32) -> u32 {
        block.read(address, UhdGeneration::Auto.row())
    }

    fn items(first: u32, count: u32) -> Vec<Sc16> {
        (first..first + count).map(u32::to_le_bytes).collect()
    }

    /// A block whose port `port` records `size` bytes from `base` on, and plays them.
    fn replay(port: u32, base: u32, size: u32) -> Replay {
        let mut block = Replay::new(2);
        for (offset, value) in [
            (regs::RECORD_BASE, base),
            (regs::RECORD_SIZE, size),
            (regs::PLAY_BASE, base),
            (regs::PLAY_SIZE, size),
            (regs::PACKET_WORDS, 4),
            (regs::RECORD_RESTART, 1),
        ] {
            block.write(regs::BANK * port + offset, value);
        }
        block
    }

    /// Takes packets until `count` have come or there is none.
    fn played(block: &mut Replay, port: usize, count: usize) -> Vec<(BlockPacket, Vec<u32>)> {
        let mut packets = Vec::new();
        while packets.len() < count {
            let Some(packet) = block.next_packet(port) else { break };
            let mut out = vec![[0; 4]; packet.bytes / 4];
            // In two pieces, as a port may lend its memory.
            let (first, rest) = out.split_at_mut(1);
            block.fill(port, 0, first);
            block.fill(port, 4, rest);
            block.sent(port);
            packets.push((packet, out.into_iter().map(u32::from_le_bytes).collect()));
        }
        packets
    }

    #[test]
    fn a_recording_stops_when_it_is_full_and_is_played_in_packets() {
        let mut block = replay(1, 1 << 20, 80);
        assert_eq!(block.take(1, &items(0, 12)), 12);
        assert_eq!(read(&block, 0x120), 48);
        assert_eq!(block.take(1, &items(12, 12)), 8, "the rest has to wait");
        assert_eq!((read(&block, 0x120), read(&block, 0x154)), (80, (1 << 20) + 80));
        assert_eq!(read(&block, 0x20), 0, "the other port");
        block.write(0x138, 10);
        block.write(0x148, command::FINITE);
        let packets = played(&mut block, 1, 9);
        let shape: Vec<_> = packets.iter().map(|(p, _)| (p.bytes, p.timestamp, p.eob)).collect();
        assert_eq!(shape, [(32, None, false), (32, None, false), (16, None, true)]);
        let values: Vec<_> = packets.into_iter().flat_map(|(_, values)| values).collect();
        assert_eq!(values, (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn continuous_playing_wraps_around_and_ends_with_a_stop() {
        let mut block = replay(0, 64, 48);
        block.take(0, &items(0, 12));
        block.write(regs::PLAY_COMMAND, command::CONTINUOUS);
        let packets = played(&mut block, 0, 4);
        let sizes: Vec<_> = packets.iter().map(|(packet, _)| packet.bytes).collect();
        assert_eq!(sizes, [32, 16, 32, 16]);
        assert_eq!(packets[3].1, [8, 9, 10, 11]);
        block.write(regs::PLAY_COMMAND, command::STOP);
        assert_eq!(block.next_packet(0), None);
    }

    #[test]
    fn a_timed_play_counts_its_items_and_commands_queue() {
        let mut block = replay(0, 0, 64);
        block.write(regs::PLAY_WORDS, 8);
        block.write(regs::PLAY_TIME, 1_000);
        block.write(regs::PLAY_COMMAND, command::TIMED | command::FINITE);
        block.write(regs::PLAY_TIME, 5_000);
        block.write(regs::PLAY_COMMAND, command::TIMED | command::FINITE);
        assert_eq!(read(&block, regs::COMMANDS_FREE), 30);
        let times: Vec<_> =
            played(&mut block, 0, 9).iter().map(|(p, _)| (p.timestamp.unwrap(), p.eob)).collect();
        assert_eq!(times, [(1_000, false), (1_008, true), (5_000, false), (5_008, true)]);
    }

    #[test]
    fn a_play_that_follows_does_not_overtake_the_recording() {
        let mut block = replay(0, 64, 64);
        block.write(regs::PLAY_WORDS, 8);
        block.write(regs::PLAY_COMMAND, command::FINITE | command::FOLLOW);
        let mut values = Vec::new();
        for (first, count, packets) in [(0, 7, 0), (7, 4, 1), (11, 5, 1)] {
            assert_eq!(block.take(0, &items(first, count)), count as usize);
            let some = played(&mut block, 0, 9);
            assert_eq!(some.len(), packets, "after {first}");
            values.extend(some.into_iter().flat_map(|(_, values)| values));
        }
        assert_eq!(values, (0..16).collect::<Vec<_>>());
    }

    #[test]
    fn a_play_without_an_end_of_burst_joins_the_next_one() {
        let mut block = replay(0, 0, 64);
        block.write(regs::PLAY_WORDS, 8);
        block.write(regs::PLAY_COMMAND, command::FINITE | command::WITHOUT_EOB);
        block.write(regs::PLAY_COMMAND, command::FINITE);
        let ends: Vec<_> = played(&mut block, 0, 9).iter().map(|(packet, _)| packet.eob).collect();
        assert_eq!(ends, [false, false, false, true]);
    }

    #[test]
    fn its_description_is_that_of_the_hardware() {
        let block = Replay::new(2);
        assert_eq!([0x04, 0x4C, 0x50].map(|at| read(&block, at)), [64 << 16 | 26, 160, 4]);
        assert_eq!(read(&block, 0x200), 0, "there is no third port");
    }

    #[test]
    fn what_makes_no_sense_does_nothing() {
        let mut block = replay(0, 0xffff_ff00, 0xffff_ffff);
        for command in [command::FINITE, command::CONTINUOUS, 3] {
            block.write(regs::PLAY_COMMAND, command);
            assert_eq!(block.next_packet(0), None);
        }
        assert_eq!(block.take(0, &items(0, 9)), 9, "taken, and stored nowhere");
        for (address, value) in [(0x14, u32::MAX), (0x1C, u32::MAX), (0xFFFF_FFFC, 1)] {
            block.write(address, value);
        }
        assert_eq!(block.take(0, &items(0, 9)), 9);
    }
}
