//! Deinterleaving.

use super::stage::{ReceiverStage, StageBlock};
use crate::rx::memory;
use crate::rx::outer::{BlockDeinterleaver, INCOMPLETE_CODEWORDS};
use crate::segment::CodeBlock;
use millstream_flow::BlockFacts;
use millstream_flow::registry::BlockParameters;

/// Restores the order of bytes.
///
/// # Stream Inputs
/// `in`: blocks of 207 interleaved bytes.
///
/// # Stream Outputs
/// `out`: codewords, 52 blocks late.
pub type AtscDeinterleaver = StageBlock<BlockDeinterleaver>;

impl AtscDeinterleaver {
    /// Creates a deinterleaver in its initial state.
    #[must_use]
    pub fn new() -> Self {
        Self::of(BlockDeinterleaver::new())
    }
}

impl Default for AtscDeinterleaver {
    fn default() -> Self {
        Self::new()
    }
}

impl ReceiverStage for BlockDeinterleaver {
    type Input = CodeBlock;
    type Output = CodeBlock;
    const MADE: usize = 1;
    const LAST: usize = INCOMPLETE_CODEWORDS;

    fn process(&mut self, block: &CodeBlock, output: &mut [CodeBlock]) -> usize {
        Self::process(self, block).map(|codeword| output[0] = codeword).is_some().into()
    }

    fn finish(&mut self, output: &mut [CodeBlock]) -> usize {
        let mut made = 0;
        Self::finish(self, &mut |codeword| {
            output[made] = *codeword;
            made += 1;
        });
        made
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.memory(memory::of_deinterleaver());
    }
}

/// Deinterleaves the bytes of codewords.
#[derive(BlockParameters)]
#[block(atsc_deinterleaver, pure)]
struct DeinterleaverParameters {}

impl DeinterleaverParameters {
    fn make(self) -> AtscDeinterleaver {
        AtscDeinterleaver::new()
    }
}
