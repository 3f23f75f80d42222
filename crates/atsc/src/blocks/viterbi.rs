//! Trellis decoding.

use super::stage::{ReceiverStage, StageBlock};
use crate::rx::{memory, trellis_decoder::TrellisDecoder};
use crate::segment::{CodeBlock, Segment};
use millstream_flow::BlockFacts;
use millstream_flow::registry::BlockParameters;

/// Decodes the trellis code of equalised segments.
///
/// # Stream Inputs
/// `in`: equalised segments.
///
/// # Stream Outputs
/// `out`: blocks of 207 interleaved bytes.
pub type AtscViterbi = StageBlock<TrellisDecoder>;

impl AtscViterbi {
    /// Creates a decoder in its initial state.
    #[must_use]
    pub fn new() -> Self {
        Self::of(TrellisDecoder::new())
    }
}

impl Default for AtscViterbi {
    fn default() -> Self {
        Self::new()
    }
}

/// Writes blocks one behind the other, and counts them.
fn into(output: &mut [CodeBlock], run: impl FnOnce(&mut dyn FnMut(&CodeBlock))) -> usize {
    let mut made = 0;
    run(&mut |block| {
        output[made] = *block;
        made += 1;
    });
    made
}

impl ReceiverStage for TrellisDecoder {
    type Input = Segment;
    type Output = CodeBlock;
    const MADE: usize = 2;
    const LAST: usize = 2;

    fn process(&mut self, segment: &Segment, output: &mut [CodeBlock]) -> usize {
        into(output, |each| Self::process(self, segment, each))
    }

    fn finish(&mut self, output: &mut [CodeBlock]) -> usize {
        into(output, |each| Self::finish(self, each))
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.memory(memory::of_trellis_decoder());
    }
}

/// Decodes the trellis code: turns segments into bytes.
#[derive(BlockParameters)]
#[block(atsc_viterbi, pure)]
struct ViterbiParameters {}

impl ViterbiParameters {
    fn make(self) -> AtscViterbi {
        AtscViterbi::new()
    }
}
