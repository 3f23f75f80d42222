//! Equalisation.

use super::monitors::{Monitors, ReceiverName};
use super::stage::{ReceiverStage, StageBlock};
use crate::monitor::Monitor;
use crate::rx::{equalizer::Equalizer, memory};
use crate::segment::Segment;
use millstream_flow::BlockFacts;
use millstream_flow::registry::BlockParameters;
use std::sync::Arc;

/// Equalises segments, trained on the field sync.
///
/// # Stream Inputs
/// `in`: segments as received.
///
/// # Stream Outputs
/// `out`: the same segments equalised, one segment late.
pub type AtscEqualizer = StageBlock<MonitoredEqualizer>;

impl AtscEqualizer {
    /// Creates an equaliser that reports to `monitor`.
    #[must_use]
    pub fn new(monitor: Arc<Monitor>) -> Self {
        Self::of(MonitoredEqualizer { equalizer: Equalizer::new(), monitor })
    }
}

/// The stage of an [`AtscEqualizer`].
#[derive(Debug)]
pub struct MonitoredEqualizer {
    equalizer: Equalizer,
    monitor: Arc<Monitor>,
}

impl ReceiverStage for MonitoredEqualizer {
    type Input = Segment;
    type Output = Segment;
    const MADE: usize = 1;
    const LAST: usize = 1;
    // A segment completes the one before it.
    const IS_LATE: bool = true;

    fn process(&mut self, segment: &Segment, output: &mut [Segment]) -> usize {
        self.equalizer.process(segment, &mut output[0]).into()
    }

    fn finish(&mut self, output: &mut [Segment]) -> usize {
        self.equalizer.finish(&mut output[0]).into()
    }

    fn report(&mut self) {
        self.equalizer.report(&self.monitor);
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.memory(memory::of_equalizer());
        facts.metrics.extend(self.monitor.equalizer_metrics());
    }
}

/// Equalises segments; it trains on the field sync.
#[derive(BlockParameters)]
#[block(atsc_equalizer, pure, with = Monitors)]
struct EqualizerParameters {
    #[parameter(flatten)]
    receiver: ReceiverName,
}

impl EqualizerParameters {
    fn make(self, monitors: &Monitors) -> AtscEqualizer {
        AtscEqualizer::new(self.receiver.monitor(monitors))
    }
}
