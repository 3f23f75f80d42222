//! Equalisation.

use crate::monitor::Monitor;
use crate::rx::equalizer::Equalizer;
use crate::segment::Segment;
use millstream_flow::{Block, BlockError, Context, In, Metric, Out, Ports, Work};
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
}

impl AtscEqualizer {
    /// Creates an equaliser that reports to `monitor`.
    #[must_use]
    pub fn new(monitor: Arc<Monitor>) -> Self {
        Self { input: In::new(), output: Out::new(), equalizer: Equalizer::new(), monitor }
    }
}

impl Block for AtscEqualizer {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let (segments, room) = (self.input.slice(), self.output.slice_mut());
        let count = segments.len().min(room.len());
        let mut made = 0;
        for segment in &segments[..count] {
            made += usize::from(self.equalizer.process(segment, &mut room[made]));
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
        self.input.consume(count);
        self.output.produce(made);
        Ok(Work::Continue)
    }

    fn metrics(&self) -> Vec<(&'static str, Metric)> {
        self.monitor.equalizer_metrics()
    }
}
