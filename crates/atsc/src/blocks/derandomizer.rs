//! Derandomising: codewords to packets.

use super::monitors::{Monitors, ReceiverName};
use super::stage::{ReceiverStage, StageBlock};
use crate::monitor::Monitor;
use crate::params::PACKET_BYTES;
use crate::rx::outer::packet;
use crate::segment::CodeBlock;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{BlockFacts, BlockMemory, Key, TagValue, keys};
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
pub type AtscDerandomizer = StageBlock<Derandomizer>;

impl AtscDerandomizer {
    /// Creates a derandomiser that reports to `monitor`.
    #[must_use]
    pub fn new(monitor: Arc<Monitor>) -> Self {
        Self::of(Derandomizer { monitor })
    }
}

/// The stage of an [`AtscDerandomizer`].
#[derive(Debug)]
pub struct Derandomizer {
    monitor: Arc<Monitor>,
}

impl ReceiverStage for Derandomizer {
    type Input = CodeBlock;
    type Output = u8;
    const MADE: usize = PACKET_BYTES;
    const LAST: usize = 0;

    fn process(&mut self, codeword: &CodeBlock, output: &mut [u8]) -> usize {
        output[..PACKET_BYTES].copy_from_slice(&packet(codeword, &self.monitor));
        PACKET_BYTES
    }

    fn tag(&self, codeword: &CodeBlock) -> Option<(Key, TagValue)> {
        (codeword.index == 0).then(|| (keys::SOURCE_ITEM, codeword.field_at_sample.into()))
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.memory(BlockMemory::none());
        facts.metrics.extend(self.monitor.packet_metrics());
    }
}

/// Derandomises codewords to transport stream packets.
#[derive(BlockParameters)]
#[block(atsc_derandomizer, pure, with = Monitors)]
struct DerandomizerParameters {
    #[parameter(flatten)]
    receiver: ReceiverName,
}

impl DerandomizerParameters {
    fn make(self, monitors: &Monitors) -> AtscDerandomizer {
        AtscDerandomizer::new(self.receiver.monitor(monitors))
    }
}
