//! Trellis decoding.

use super::tag_mover::TagMover;
use crate::rx::{memory, trellis_decoder::TrellisDecoder};
use crate::segment::{CodeBlock, Segment};
use millstream_flow::{Block, BlockError, BlockFacts, Context, In, Out, Ports, TagRule, Work};

/// The most blocks that one segment completes.
const BLOCKS_PER_SEGMENT: usize = 2;

/// Decodes the trellis code of equalised segments.
///
/// # Stream Inputs
/// `in`: equalised segments.
///
/// # Stream Outputs
/// `out`: blocks of 207 interleaved bytes.
#[derive(Ports)]
pub struct AtscViterbi {
    /// Equalised segments.
    pub input: In<Segment>,
    /// Interleaved bytes.
    pub output: Out<CodeBlock>,
    decoder: TrellisDecoder,
    tags: TagMover,
}

impl AtscViterbi {
    /// Creates a decoder in its initial state.
    #[must_use]
    pub fn new() -> Self {
        Self {
            input: In::new(),
            output: Out::with_min_items(BLOCKS_PER_SEGMENT),
            decoder: TrellisDecoder::new(),
            tags: TagMover::new(),
        }
    }
}

impl Default for AtscViterbi {
    fn default() -> Self {
        Self::new()
    }
}

impl Block for AtscViterbi {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let (segments, room) = (self.input.slice(), self.output.slice_mut());
        let count = segments.len().min(room.len() / BLOCKS_PER_SEGMENT);
        let mut made = 0;
        for (index, segment) in segments[..count].iter().enumerate() {
            self.tags.note(&self.input, index, made);
            self.decoder.process(segment, &mut |block| {
                room[made] = *block;
                made += 1;
            });
        }
        if self.input.is_ended()
            && count == segments.len()
            && made + BLOCKS_PER_SEGMENT <= room.len()
        {
            self.decoder.finish(&mut |block| {
                room[made] = *block;
                made += 1;
            });
        }
        self.tags.put(&mut self.output);
        self.input.consume(count);
        self.output.produce(made);
        Ok(Work::Continue)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.tag_rule(TagRule::Own).memory(memory::of_trellis_decoder());
    }
}
