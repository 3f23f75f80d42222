//! Reed-Solomon decoding.

use crate::monitor::Monitor;
use crate::rx::outer::correct;
use crate::segment::CodeBlock;
use millstream_flow::{Block, BlockError, BlockFacts, BlockMemory, Context, In, Out, Ports, Work};
use std::sync::Arc;

/// Corrects codewords, and marks those with more than ten wrong bytes.
///
/// # Stream Inputs
/// `in`: codewords as received.
///
/// # Stream Outputs
/// `out`: codewords corrected or marked.
#[derive(Ports)]
pub struct AtscReedSolomon {
    /// Codewords as received.
    pub input: In<CodeBlock>,
    /// Codewords corrected or marked.
    pub output: Out<CodeBlock>,
    monitor: Arc<Monitor>,
}

impl AtscReedSolomon {
    /// Creates a decoder that reports to `monitor`.
    #[must_use]
    pub fn new(monitor: Arc<Monitor>) -> Self {
        Self { input: In::new(), output: Out::new(), monitor }
    }
}

impl Block for AtscReedSolomon {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let (codewords, room) = (self.input.slice(), self.output.slice_mut());
        let count = codewords.len().min(room.len());
        for (to, from) in room.iter_mut().zip(codewords) {
            *to = *from;
            correct(to, &self.monitor);
        }
        self.input.consume(count);
        self.output.produce(count);
        Ok(Work::Continue)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.memory(BlockMemory::none());
        facts.metrics.extend(self.monitor.outer_metrics());
    }
}
