//! From trellis-decoded bytes to packets: deinterleaver, Reed-Solomon, derandomiser.

use crate::code::interleaver::{Deinterleaver, TOTAL_DELAY_BYTES};
use crate::code::{randomizer, rs};
use crate::monitor::Monitor;
use crate::params::{CODEWORD_BYTES, FIELD_DATA_SEGMENTS, PACKET_BYTES, PAYLOAD_BYTES, TS_SYNC};
use crate::segment::CodeBlock;
use bytemuck::Zeroable;

/// Bytes of a block that still belong to the codeword begun in the previous block: the
/// interleaver's delay is not a whole number of blocks.
const CARRIED: usize = TOTAL_DELAY_BYTES % CODEWORD_BYTES;

/// Blocks from the one that a codeword's position names to the one that completes it.
const DELAY_BLOCKS: usize = TOTAL_DELAY_BYTES / CODEWORD_BYTES + 1;

/// Codewords at the end of a stream that lack no more bytes than can be corrected: four for every
/// absent block.
pub const INCOMPLETE_CODEWORDS: usize = 2;

/// Restores the order of bytes; its output blocks are codewords, 52 blocks late.
#[derive(Clone, Debug)]
pub struct BlockDeinterleaver {
    deinterleaver: Deinterleaver,
    codeword: CodeBlock,
    /// Blocks taken since the restart, up to the delay.
    filled: usize,
    /// [`CodeBlock::field_at_sample`] of the last block that begins a field.
    field_at_sample: u64,
    is_finished: bool,
}

impl BlockDeinterleaver {
    /// Creates a deinterleaver in its initial state.
    #[must_use]
    pub fn new() -> Self {
        Self {
            deinterleaver: Deinterleaver::new(),
            codeword: CodeBlock { restart: true, ..CodeBlock::zeroed() },
            filled: 0,
            field_at_sample: 0,
            is_finished: false,
        }
    }

    /// Takes a block; returns the codeword that it completes.
    pub fn process(&mut self, block: &CodeBlock) -> Option<CodeBlock> {
        if block.restart {
            *self = Self::new();
        }
        if block.index == 0 && !self.is_finished {
            self.field_at_sample = block.field_at_sample;
        }
        let mut bytes = block.bytes;
        self.deinterleaver.process(&mut bytes);
        let (old, new) = bytes.split_at(CARRIED);
        self.codeword.bytes[CODEWORD_BYTES - CARRIED..].copy_from_slice(old);
        if self.codeword.index == 0 {
            self.codeword.field_at_sample = self.field_at_sample;
        }
        let complete = self.codeword;
        self.codeword.bytes[..CODEWORD_BYTES - CARRIED].copy_from_slice(new);
        if self.filled < DELAY_BLOCKS {
            self.filled += 1;
            return None;
        }
        let index = (complete.index + 1) % FIELD_DATA_SEGMENTS as u16;
        self.codeword = CodeBlock { index, restart: false, ..self.codeword };
        Some(complete)
    }

    /// Passes on the codewords that lack only a few bytes, at the end of a stream.
    pub fn finish(&mut self, on_codeword: &mut dyn FnMut(&CodeBlock)) {
        if !std::mem::replace(&mut self.is_finished, true) {
            for _ in 0..INCOMPLETE_CODEWORDS {
                if let Some(codeword) = self.process(&CodeBlock::zeroed()) {
                    on_codeword(&codeword);
                }
            }
        }
    }
}

impl Default for BlockDeinterleaver {
    fn default() -> Self {
        Self::new()
    }
}

/// Corrects a codeword in place, or marks it as uncorrectable, and counts the result.
pub fn correct(codeword: &mut CodeBlock, monitor: &Monitor) {
    match rs::decode(&mut codeword.bytes) {
        Ok(0) => {}
        Ok(corrected) => {
            monitor.corrected_packets.add(1);
            monitor.corrected_bytes.add(corrected as u64);
        }
        Err(rs::Uncorrectable) => {
            codeword.failed = true;
            monitor.uncorrected_packets.add(1);
        }
    }
}

/// Returns the packet of a codeword: derandomised, with its sync byte, and with the transport error
/// indicator set if the codeword is marked.
#[must_use]
pub fn packet(codeword: &CodeBlock, monitor: &Monitor) -> [u8; PACKET_BYTES] {
    let mut payload = *codeword.bytes.first_chunk::<PAYLOAD_BYTES>().expect("a longer array");
    randomizer::apply(usize::from(codeword.index), &mut payload);
    let mut packet = [TS_SYNC; PACKET_BYTES];
    packet[1..].copy_from_slice(&payload);
    if codeword.failed {
        packet[1] |= 0x80;
    }
    monitor.packets.add(1);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::interleaver::Interleaver;

    fn payload(n: usize) -> [u8; PAYLOAD_BYTES] {
        std::array::from_fn(|i| (n * 7 + i * 3) as u8)
    }

    /// Returns interleaved blocks of `count` packets.
    fn blocks(count: usize) -> Vec<CodeBlock> {
        let mut interleaver = Interleaver::new();
        (0..count)
            .map(|n| {
                let mut payload = payload(n);
                randomizer::apply(n % FIELD_DATA_SEGMENTS, &mut payload);
                let mut bytes = rs::encode(&payload);
                interleaver.process(&mut bytes);
                let index = (n % FIELD_DATA_SEGMENTS) as u16;
                let field_at_sample = (n / FIELD_DATA_SEGMENTS) as u64;
                CodeBlock { field_at_sample, bytes, index, restart: n == 0, failed: false }
            })
            .collect()
    }

    fn run(blocks: &[CodeBlock], monitor: &Monitor) -> Vec<[u8; PACKET_BYTES]> {
        let mut deinterleaver = BlockDeinterleaver::new();
        let codewords = blocks.iter().filter_map(|block| deinterleaver.process(block));
        codewords
            .map(|mut codeword| {
                correct(&mut codeword, monitor);
                packet(&codeword, monitor)
            })
            .collect()
    }

    #[test]
    fn packets_come_back_from_the_first_of_the_field_on() {
        let monitor = Monitor::new();
        let out = run(&blocks(700), &monitor);
        assert_eq!(out.len(), 700 - DELAY_BLOCKS);
        for (n, packet) in out.iter().enumerate() {
            assert_eq!((packet[0], &packet[1..]), (TS_SYNC, &payload(n)[..]), "packet {n}");
        }
        assert_eq!(monitor.status().packets, out.len() as u64);
        assert_eq!(monitor.status().corrected_bytes, 0);
    }

    #[test]
    fn codewords_keep_the_number_of_their_field() {
        let mut deinterleaver = BlockDeinterleaver::new();
        let mut fields: Vec<(u16, u64)> = Vec::new();
        let mut note =
            |codeword: &CodeBlock| fields.push((codeword.index, codeword.field_at_sample));
        blocks(3 * FIELD_DATA_SEGMENTS)
            .iter()
            .filter_map(|block| deinterleaver.process(block))
            .for_each(|codeword| note(&codeword));
        deinterleaver.finish(&mut note);
        assert!(fields.len() > 2 * FIELD_DATA_SEGMENTS);
        for (n, found) in fields.iter().enumerate() {
            let field = n / FIELD_DATA_SEGMENTS;
            assert_eq!(*found, ((n % FIELD_DATA_SEGMENTS) as u16, field as u64));
        }
    }

    #[test]
    fn at_the_end_codewords_come_that_miss_few_bytes() {
        let monitor = Monitor::new();
        let mut deinterleaver = BlockDeinterleaver::new();
        let codewords = blocks(100).iter().filter_map(|block| deinterleaver.process(block)).count();
        assert_eq!(codewords, 100 - DELAY_BLOCKS);
        let mut last = Vec::new();
        deinterleaver.finish(&mut |codeword| last.push(*codeword));
        deinterleaver.finish(&mut |_| panic!("there is only one end"));
        assert_eq!(last.len(), INCOMPLETE_CODEWORDS);
        for (n, mut codeword) in (100 - DELAY_BLOCKS..).zip(last) {
            correct(&mut codeword, &monitor);
            assert_eq!(packet(&codeword, &monitor)[1..], payload(n), "packet {n}");
        }
        assert_eq!(monitor.status().corrected_packets, INCOMPLETE_CODEWORDS as u64);
    }

    #[test]
    fn bursts_are_spread_and_corrected_and_what_cannot_be_is_marked() {
        let monitor = Monitor::new();
        let mut short = blocks(300);
        // 193 bytes in a row are at most ten bytes, and a few more, in any codeword.
        short[100].bytes[..193].fill(0);
        let out = run(&short, &monitor);
        assert!(out.iter().enumerate().all(|(n, packet)| packet[1..] == payload(n)));
        assert!(monitor.status().corrected_bytes > 150);
        let mut long = blocks(300);
        long[100..110].iter_mut().for_each(|block| block.bytes.fill(0));
        let out = run(&long, &monitor);
        let marked = out.iter().filter(|packet| packet[1] & 0x80 != 0).count() as u64;
        let wrong = |n: usize| out[n][1..] != payload(n);
        assert!((0..out.len()).filter(|n| wrong(*n)).all(|n| out[n][1] & 0x80 != 0));
        assert!(marked >= monitor.status().uncorrected_packets && marked > 20);
    }

    #[test]
    fn a_restart_forgets_what_was_before() {
        let monitor = Monitor::new();
        let mut broken = blocks(200);
        broken.truncate(150);
        broken.extend(blocks(200));
        let out = run(&broken, &monitor);
        assert_eq!(out.len(), 150 - DELAY_BLOCKS + 200 - DELAY_BLOCKS);
        assert_eq!(out[150 - DELAY_BLOCKS][1..], payload(0));
        assert_eq!(monitor.status().uncorrected_packets, 0);
    }
}
