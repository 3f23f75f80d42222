//! Segments to bytes: the trellis decoders, synchronised with fields and segments.

use crate::code::trellis::{GROUP_SYMBOLS, first_coder};
use crate::code::viterbi::Decoders;
use crate::params::{
    CODEWORD_BYTES, DATA_SYMBOLS, FIELD_DATA_SEGMENTS, SYNC_SYMBOLS, TRELLIS_CODERS,
};
use crate::segment::{CodeBlock, Segment, SegmentKind};
use bytemuck::Zeroable;

/// Groups (a byte of every coder) in a field.
const FIELD_GROUPS: usize = FIELD_DATA_SEGMENTS * DATA_SYMBOLS / GROUP_SYMBOLS;

/// Decodes segments into blocks of 207 bytes, less than one segment late.
#[derive(Clone, Debug)]
pub struct TrellisDecoder {
    decoders: Decoders,
    bytes: ByteOrder,
}

/// Sorts the coders' bytes in the order of the stream.
#[derive(Clone, Debug)]
struct ByteOrder {
    /// The next group of the output, in its field.
    group: usize,
    block: CodeBlock,
    bytes: usize,
    /// [`CodeBlock::field_at_sample`] of the last field sync.
    field_at_sample: u64,
}

impl TrellisDecoder {
    /// Creates a decoder in its initial state.
    #[must_use]
    pub fn new() -> Self {
        let block = CodeBlock { restart: true, ..CodeBlock::zeroed() };
        Self {
            decoders: Decoders::new(),
            bytes: ByteOrder { group: 0, block, bytes: 0, field_at_sample: 0 },
        }
    }

    /// Takes a segment; passes on the blocks that it completes.
    pub fn process(&mut self, segment: &Segment, on_block: &mut dyn FnMut(&CodeBlock)) {
        if segment.restart() {
            *self = Self::new();
            self.decoders.set_last_z2(precoder_state(segment));
        }
        let Self { decoders, bytes } = self;
        let SegmentKind::Data(index) = segment.kind() else {
            bytes.field_at_sample = segment.header().at_sample();
            return;
        };
        let data = &segment.symbols[SYNC_SYMBOLS..];
        decoders.push(first_coder(index), data, &mut |decided| bytes.push(&decided, on_block));
    }

    /// Passes on the blocks that the symbols taken so far complete, at the end of a stream.
    pub fn finish(&mut self, on_block: &mut dyn FnMut(&CodeBlock)) {
        let Self { decoders, bytes } = self;
        decoders.finish(&mut |decided| bytes.push(&decided, on_block));
    }
}

impl ByteOrder {
    fn push(&mut self, decided: &[u8; TRELLIS_CODERS], on_block: &mut dyn FnMut(&CodeBlock)) {
        // Bytes went to the coders in the order of the segment in which the group begins.
        let first = first_coder(self.group * GROUP_SYMBOLS / DATA_SYMBOLS);
        self.group = (self.group + 1) % FIELD_GROUPS;
        let mut ordered = *decided;
        ordered.rotate_left(first);
        let mut rest = ordered.as_slice();
        while !rest.is_empty() {
            let room = (CODEWORD_BYTES - self.bytes).min(rest.len());
            let (now, later) = rest.split_at(room);
            self.block.bytes[self.bytes..self.bytes + room].copy_from_slice(now);
            self.bytes += room;
            rest = later;
            if self.bytes == CODEWORD_BYTES {
                if self.block.index == 0 {
                    // Less than a segment late: the next field sync has not come yet.
                    self.block.field_at_sample = self.field_at_sample;
                }
                on_block(&self.block);
                let index = (self.block.index + 1) % FIELD_DATA_SEGMENTS as u16;
                self.block = CodeBlock { index, restart: false, ..self.block };
                self.bytes = 0;
            }
        }
    }
}

/// Returns Z2 of every coder's last symbol in the previous field: a field sync ends with these
/// symbols.
fn precoder_state(field_sync: &Segment) -> [bool; TRELLIS_CODERS] {
    let first = first_coder(FIELD_DATA_SEGMENTS - 1);
    let last = field_sync.symbols.last_chunk::<TRELLIS_CODERS>().expect("a longer array");
    std::array::from_fn(|coder| last[(coder + TRELLIS_CODERS - first) % TRELLIS_CODERS] > 0.0)
}

impl Default for TrellisDecoder {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::trellis::{TrellisEncoder, UNIT_BYTES, UNIT_SEGMENTS, level};
    use crate::field::Parity;
    use crate::params::SEGMENT_SYMBOLS;

    #[test]
    fn a_field_of_coded_bytes_comes_back_in_order() {
        let mut encoder = TrellisEncoder::new();
        let mut decoder = TrellisDecoder::new();
        let mut sent = Vec::new();
        let mut received = Vec::new();
        // The coders start with Z2 at zero: levels below zero.
        let mut segment = [-7.0; SEGMENT_SYMBOLS];
        for field in 0..3 {
            let sync = SegmentKind::FieldSync(Parity::First);
            let sync = Segment::new(sync, field == 0, &segment);
            decoder.process(&sync, &mut |_| panic!("a field sync has no data"));
            for unit in (0..FIELD_DATA_SEGMENTS).step_by(UNIT_SEGMENTS) {
                let bytes: [u8; UNIT_BYTES] =
                    std::array::from_fn(|i| ((unit * 31 + i * 7 + field * 3) % 251) as u8);
                sent.extend(bytes);
                let mut coded = [[0; DATA_SYMBOLS]; UNIT_SEGMENTS];
                encoder.encode_unit(unit, &bytes, &mut coded);
                for (i, bits) in coded.iter().enumerate() {
                    for (out, bits) in segment[SYNC_SYMBOLS..].iter_mut().zip(bits) {
                        *out = f32::from(level(*bits));
                    }
                    let data = Segment::new(SegmentKind::Data(unit + i), false, &segment);
                    decoder.process(&data, &mut |block| received.push(*block));
                }
            }
        }
        assert_eq!(received.len(), 3 * FIELD_DATA_SEGMENTS - 1);
        for (n, block) in received.iter().enumerate() {
            assert_eq!(block.restart, n == 0);
            assert_eq!(usize::from(block.index), n % FIELD_DATA_SEGMENTS);
            assert_eq!(block.bytes[..], sent[n * CODEWORD_BYTES..][..CODEWORD_BYTES], "block {n}");
        }
    }
}
