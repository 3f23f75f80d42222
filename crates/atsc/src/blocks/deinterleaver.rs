//! Deinterleaving.

use super::tag_mover::TagMover;
use crate::rx::memory;
use crate::rx::outer::{BlockDeinterleaver, INCOMPLETE_CODEWORDS};
use crate::segment::CodeBlock;
use millstream_flow::{Block, BlockError, BlockFacts, Context, In, Out, Ports, TagRule, Work};

/// Restores the order of bytes.
///
/// # Stream Inputs
/// `in`: blocks of 207 interleaved bytes.
///
/// # Stream Outputs
/// `out`: codewords, 52 blocks late.
#[derive(Ports)]
pub struct AtscDeinterleaver {
    /// Interleaved bytes.
    pub input: In<CodeBlock>,
    /// Codewords.
    pub output: Out<CodeBlock>,
    deinterleaver: BlockDeinterleaver,
    tags: TagMover,
}

impl AtscDeinterleaver {
    /// Creates a deinterleaver in its initial state.
    #[must_use]
    pub fn new() -> Self {
        Self {
            input: In::new(),
            output: Out::with_min_items(INCOMPLETE_CODEWORDS),
            deinterleaver: BlockDeinterleaver::new(),
            tags: TagMover::new(),
        }
    }
}

impl Default for AtscDeinterleaver {
    fn default() -> Self {
        Self::new()
    }
}

impl Block for AtscDeinterleaver {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let (blocks, room) = (self.input.slice(), self.output.slice_mut());
        let count = blocks.len().min(room.len());
        let mut made = 0;
        for (index, block) in blocks[..count].iter().enumerate() {
            self.tags.note(&self.input, index, made);
            if let Some(codeword) = self.deinterleaver.process(block) {
                room[made] = codeword;
                made += 1;
            }
        }
        if self.input.is_ended()
            && count == blocks.len()
            && made + INCOMPLETE_CODEWORDS <= room.len()
        {
            self.deinterleaver.finish(&mut |codeword| {
                room[made] = *codeword;
                made += 1;
            });
        }
        self.tags.put(&mut self.output);
        self.input.consume(count);
        self.output.produce(made);
        Ok(Work::Continue)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.tag_rule(TagRule::Own).memory(memory::of_deinterleaver());
    }
}
