//! Equalisation.

use super::tag_mover::TagMover;
use crate::monitor::Monitor;
use crate::rx::{equalizer::Equalizer, memory};
use crate::segment::Segment;
use millstream_flow::{Block, BlockError, BlockFacts, Context, In, Out, Ports, TagRule, Work};
use std::sync::Arc;

/// Equalises segments, trained on the field sync.
///
/// # Stream Inputs
/// `in`: segments as received.
///
/// # Stream Outputs
/// `out`: the same segments equalised, one segment late.
#[derive(Ports)]
pub struct AtscEqualizer {
    /// Segments as received.
    pub input: In<Segment>,
    /// Segments equalised.
    pub output: Out<Segment>,
    equalizer: Equalizer,
    monitor: Arc<Monitor>,
    tags: TagMover,
}

impl AtscEqualizer {
    /// Creates an equaliser that reports to `monitor`.
    #[must_use]
    pub fn new(monitor: Arc<Monitor>) -> Self {
        let (equalizer, tags) = (Equalizer::new(), TagMover::new());
        Self { input: In::new(), output: Out::new(), equalizer, monitor, tags }
    }
}

impl Block for AtscEqualizer {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let (segments, room) = (self.input.slice(), self.output.slice_mut());
        let count = segments.len().min(room.len());
        let mut made = 0;
        for (index, segment) in segments[..count].iter().enumerate() {
            made += usize::from(self.equalizer.process(segment, &mut room[made]));
            // The segment itself comes next.
            self.tags.note(&self.input, index, made);
        }
        if self.input.is_ended()
            && made < room.len()
            && count == segments.len()
            && self.equalizer.finish(&mut room[made])
        {
            made += 1;
        }
        if made > 0 {
            self.equalizer.report(&self.monitor);
        }
        self.tags.put(&mut self.output);
        self.input.consume(count);
        self.output.produce(made);
        Ok(Work::Continue)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.tag_rule(TagRule::Own).memory(memory::of_equalizer());
        facts.metrics.extend(self.monitor.equalizer_metrics());
    }
}
