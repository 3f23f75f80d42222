//! Reed-Solomon decoding.

use super::monitors::{Monitors, ReceiverName};
use crate::monitor::Monitor;
use crate::rx::outer::correct;
use crate::segment::CodeBlock;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{BlockFacts, BlockMemory, Each, OneToOne};
use std::sync::Arc;

/// Corrects codewords, and marks those with more than ten wrong bytes.
///
/// # Stream Inputs
/// `in`: codewords as received.
///
/// # Stream Outputs
/// `out`: codewords corrected or marked.
pub type AtscReedSolomon = Each<CodewordCorrector>;

/// The conversion of an [`AtscReedSolomon`].
#[derive(Debug)]
pub struct CodewordCorrector {
    monitor: Arc<Monitor>,
}

impl CodewordCorrector {
    /// Creates a decoder that reports to `monitor`.
    #[must_use]
    pub fn new(monitor: Arc<Monitor>) -> Self {
        Self { monitor }
    }
}

impl OneToOne for CodewordCorrector {
    type Input = CodeBlock;
    type Output = CodeBlock;

    fn run(&mut self, input: &[CodeBlock], output: &mut [CodeBlock]) {
        for (to, from) in output.iter_mut().zip(input) {
            *to = *from;
            correct(to, &self.monitor);
        }
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.memory(BlockMemory::none());
        facts.metrics.extend(self.monitor.outer_metrics());
    }
}

/// Corrects codewords, and marks those it cannot correct.
#[derive(BlockParameters)]
#[block(atsc_rs, pure, with = Monitors)]
struct ReedSolomonParameters {
    #[parameter(flatten)]
    receiver: ReceiverName,
}

impl ReedSolomonParameters {
    fn make(self, monitors: &Monitors) -> AtscReedSolomon {
        Each::new(CodewordCorrector::new(self.receiver.monitor(monitors)))
    }
}
