//! Samples to segments.

use super::monitors::{Monitors, ReceiverName};
use crate::Sample;
use crate::monitor::Monitor;
use crate::rx::front_end::CHUNK_SAMPLES;
use crate::rx::{FrontEnd, ReceiverError, RxConfig, memory};
use crate::segment::{Segment, SegmentKind};
use millstream_flow::registry::BlockParameters;
use millstream_flow::{
    Block, BlockError, BlockFacts, Context, In, Key, Out, Ports, TagRule, TagTime, TagValue, Work,
    keys,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// The most segments that one call puts out: those of the searched piece when the pilot is found,
/// or those of a gap.
const PENDING_SEGMENTS: usize = 512;
/// The most tags that wait for a segment. Without lock none comes, and the oldest tags go.
const WAITING_TAGS: usize = 64;

/// Finds and demodulates an ATSC signal.
///
/// # Stream Inputs
/// `in`: complex samples, the middle of the channel at 0 Hz. A tag `loss_items` gives the number of
/// missing samples before its item; carrier, timing and position in the field continue over such a
/// gap.
///
/// # Stream Outputs
/// `out`: segments whose position in the field is known; no segments without lock. If the samples
/// have times, each field sync has a tag `rx_time`: the time of the last sample that was needed for
/// it, at most a few milliseconds after its last symbol. Other tags move to the next segment (the
/// last 64 before it), but `rx_rate_hz` ends here.
#[derive(Ports)]
pub struct AtscDemod {
    /// Samples.
    pub input: In<Sample>,
    /// Segments.
    pub output: Out<Segment>,
    front_end: FrontEnd,
    pending: VecDeque<Segment>,
    /// Samples before which gaps have been handled.
    gaps_taken: u64,
    /// Samples whose tags have been taken.
    tags_taken: u64,
    /// Tags for the next segment.
    waiting: VecDeque<(Key, TagValue)>,
    /// A sample and its time.
    anchor: Option<(u64, TagTime)>,
    rate_hz: f64,
    /// The field syncs among the segments of a call.
    syncs: Vec<usize>,
    /// Whether this demodulator holds the monitor's only reporting claim.
    reports: bool,
    /// Whether the last samples have been taken.
    finished: bool,
}

impl AtscDemod {
    /// Creates a demodulator that reports to `monitor`.
    ///
    /// # Errors
    /// [`ReceiverError`] when the configuration makes no sense.
    pub fn new(config: RxConfig, monitor: Arc<Monitor>) -> Result<Self, ReceiverError> {
        Ok(Self {
            input: In::new(),
            output: Out::new(),
            front_end: FrontEnd::new(config, monitor)?,
            pending: VecDeque::with_capacity(PENDING_SEGMENTS),
            gaps_taken: 0,
            tags_taken: 0,
            waiting: VecDeque::with_capacity(WAITING_TAGS),
            anchor: None,
            rate_hz: config.sample_rate_hz,
            syncs: Vec::with_capacity(PENDING_SEGMENTS),
            reports: false,
            finished: false,
        })
    }

    /// Returns the number of missing samples before the next one, and the number of samples up to
    /// the next gap.
    fn next_gap(&self) -> (u64, usize) {
        let (position, mut missing) = (self.input.position(), 0);
        for (_, tag) in self.input.tags() {
            match tag.value {
                _ if tag.key != keys::LOSS_ITEMS || tag.offset < self.gaps_taken => {}
                TagValue::Count(items) if tag.offset == position => missing += items,
                TagValue::Count(_) => return (missing, (tag.offset - position) as usize),
                _ => {}
            }
        }
        (missing, usize::MAX)
    }

    /// Takes the tags before sample `end`: times as the anchor of those of segments, others to the
    /// next segment.
    fn take_tags(&mut self, end: u64) {
        let Self { input, waiting, tags_taken, anchor, .. } = self;
        for (_, tag) in input.tags() {
            if tag.offset < *tags_taken || tag.offset >= end {
                continue;
            }
            match (tag.key, tag.value) {
                (keys::RX_TIME, TagValue::Time(time)) => *anchor = Some((tag.offset, time)),
                (keys::RX_RATE_HZ, _) => {}
                (key, value) => {
                    if waiting.len() == WAITING_TAGS {
                        waiting.pop_front();
                    }
                    waiting.push_back((key, value));
                }
            }
        }
        *tags_taken = end.max(*tags_taken);
    }

    /// Returns the time of sample `sample`.
    fn time_of(&self, sample: u64) -> Option<TagTime> {
        let (first, time) = self.anchor?;
        let since = TagTime::from_ticks(sample.checked_sub(first)?, self.rate_hz);
        let (fraction, carry) = time.fraction.overflowing_add(since.fraction);
        let seconds = time.seconds.checked_add(since.seconds)?.checked_add(carry.into())?;
        Some(TagTime { seconds, fraction })
    }

    /// Moves pending segments out; returns false if some remain.
    fn flush(&mut self) -> bool {
        let room = self.output.slice_mut();
        let count = room.len().min(self.pending.len());
        for (to, from) in room.iter_mut().zip(self.pending.drain(..count)) {
            *to = from;
        }
        self.output.produce(count);
        self.pending.is_empty()
    }
}

impl Block for AtscDemod {
    fn start(&mut self) -> Result<(), BlockError> {
        if !self.front_end.monitor().claim() {
            return Err("another atsc_demod is part of the same receiver; give each receiver's \
                        blocks a name of their own: receiver = \"NAME\""
                .into());
        }
        self.reports = true;
        Ok(())
    }

    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        while self.flush() {
            let samples = self.input.slice();
            if samples.is_empty() && (self.finished || !self.input.is_ended()) {
                break;
            }
            let (missing, until_gap) = self.next_gap();
            let count = samples.len().min(CHUNK_SAMPLES).min(until_gap);
            let end = self.input.position() + count as u64;
            // What comes out at a gap was sent before it, so its time follows from that before.
            let before_gap = self.time_of(self.input.position());
            self.take_tags(end);
            let samples = self.input.slice();
            let Self { front_end, pending, syncs, .. } = self;
            let is_gap = missing > 0 && !samples.is_empty();
            let (room, mut made, mut all) = (self.output.slice_mut(), 0, 0);
            syncs.clear();
            let mut on_segment = |segment: &Segment| {
                if matches!(segment.kind(), SegmentKind::FieldSync(_))
                    && syncs.len() < syncs.capacity()
                {
                    syncs.push(all);
                }
                all += 1;
                match room.get_mut(made) {
                    Some(place) => {
                        *place = *segment;
                        made += 1;
                    }
                    None => pending.push_back(*segment),
                }
            };
            if samples.is_empty() {
                front_end.finish(&mut on_segment);
                self.finished = true;
            } else if is_gap {
                front_end.gap(missing, &mut on_segment);
                self.gaps_taken = self.input.position() + 1;
            } else {
                front_end.process(&samples[..count], &mut on_segment);
                self.input.consume(count);
            }
            if all > 0 {
                for (key, value) in self.waiting.drain(..) {
                    self.output.tag(0, key, value);
                }
            }
            if let Some(time) = if is_gap { before_gap } else { self.time_of(end) } {
                for index in 0..self.syncs.len() {
                    self.output.tag(self.syncs[index], keys::RX_TIME, time);
                }
            }
            self.output.produce(made);
        }
        Ok(Work::Continue)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.tag_rule(TagRule::Own).memory(memory::of_front_end(self.front_end.sample_rate_hz()));
        facts.metrics.extend(self.front_end.monitor().front_end_metrics());
    }
}

impl Drop for AtscDemod {
    fn drop(&mut self) {
        if self.reports {
            self.front_end.monitor().release();
        }
    }
}

/// Finds and demodulates an ATSC signal: turns samples into segments.
#[derive(BlockParameters)]
#[block(atsc_demod, pure, with = Monitors, example = "rate_hz = 6.25e6")]
struct DemodParameters {
    #[parameter(flatten)]
    receiver: ReceiverName,
    /// complex samples per second, from 5.45e6
    rate_hz: f64,
}

impl DemodParameters {
    fn make(self, monitors: &Monitors) -> Result<AtscDemod, ReceiverError> {
        let config = RxConfig { sample_rate_hz: self.rate_hz };
        AtscDemod::new(config, self.receiver.monitor(monitors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    #[test]
    fn a_receiver_has_one_demodulator_at_a_time() {
        let monitor = Arc::new(Monitor::new());
        let demod = || {
            let config = RxConfig { sample_rate_hz: 6.25e6 };
            Mock::new(AtscDemod::new(config, Arc::clone(&monitor)).unwrap())
        };
        let mut first = demod();
        first.call().unwrap();
        let error = demod().call().unwrap_err().to_string();
        assert_eq!(
            error,
            "another atsc_demod is part of the same receiver; give each receiver's blocks a name \
             of their own: receiver = \"NAME\""
        );
        first.call().unwrap();
        drop(first);
        demod().call().unwrap();
    }
}
