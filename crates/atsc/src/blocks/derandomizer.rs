//! Derandomising: codewords to packets.

use super::tag_mover::TagMover;
use crate::monitor::Monitor;
use crate::params::PACKET_BYTES;
use crate::rx::outer::packet;
use crate::segment::CodeBlock;
use millstream_dsp::chunks::Chunks;
use millstream_flow::{
    Block, BlockError, BlockFacts, BlockMemory, Context, In, Out, Ports, TagRule, Work, keys,
};
use std::sync::Arc;

/// Derandomises codewords and puts out transport stream packets.
///
/// # Stream Inputs
/// `in`: codewords corrected or marked.
///
/// # Stream Outputs
/// `out`: bytes of the transport stream, always whole packets of 188. A packet of a marked codeword
/// has its transport error indicator set. The first packet of each field has the tag `source_item`:
/// the number of samples that had entered the demodulator before the field's sync, with those that
/// were reported as missing.
#[derive(Ports)]
pub struct AtscDerandomizer {
    /// Codewords corrected or marked.
    pub input: In<CodeBlock>,
    /// Transport stream.
    pub output: Out<u8>,
    monitor: Arc<Monitor>,
    tags: TagMover,
}

impl AtscDerandomizer {
    /// Creates a derandomiser that reports to `monitor`.
    #[must_use]
    pub fn new(monitor: Arc<Monitor>) -> Self {
        Self {
            input: In::new(),
            output: Out::with_min_items(PACKET_BYTES),
            monitor,
            tags: TagMover::new(),
        }
    }
}

impl Block for AtscDerandomizer {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let codewords = self.input.slice();
        let room = self.output.slice_mut().in_chunks_mut::<PACKET_BYTES>().0;
        let count = codewords.len().min(room.len());
        for (to, codeword) in room.iter_mut().zip(codewords) {
            *to = packet(codeword, &self.monitor);
        }
        for (index, codeword) in codewords[..count].iter().enumerate() {
            self.tags.note(&self.input, index, index * PACKET_BYTES);
            if codeword.index == 0 {
                let first = codeword.field_at_sample;
                self.output.tag(index * PACKET_BYTES, keys::SOURCE_ITEM, first);
            }
        }
        self.tags.put(&mut self.output);
        self.input.consume(count);
        self.output.produce(count * PACKET_BYTES);
        Ok(Work::Continue)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.tag_rule(TagRule::Own).memory(BlockMemory::none());
        facts.metrics.extend(self.monitor.packet_metrics());
    }
}
