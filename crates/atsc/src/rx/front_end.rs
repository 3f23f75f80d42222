//! Samples to segments: everything with feedback, from pilot search to field sync.
//!
//! An interruption of the signal shorter than about 60 ms, or a known gap of at most
//! [`MAX_BRIDGED_S`], leaves carrier, timing and the position in the field as they were: segments
//! continue, marked as held.

use super::demodulator::Demodulator;
use super::field_tracker::{FieldStep, FieldTracker};
use super::pilot::{PilotFinder, PilotSearch};
use super::segment_sync::{SegmentSync, SyncOutput};
use super::symbol_block::{BlockOrder, Places, SymbolBlock};
use crate::Sample;
use crate::monitor::{LockState, Monitor};
use crate::params::{FIELD_SEGMENTS, MIN_SAMPLE_RATE_HZ, SEGMENT_SYMBOLS};
use crate::segment::{Segment, SegmentKind};
use std::sync::Arc;

/// The highest accepted sample rate: beyond it the matched filter becomes too long.
pub const MAX_SAMPLE_RATE_HZ: f64 = 64e6;

/// Samples of a chunk. Fixed chunks keep results independent of the caller's slices.
pub const CHUNK_SAMPLES: usize = 2048;

/// The longest gap that is bridged, in seconds of signal.
pub const MAX_BRIDGED_S: f64 = 0.03;

/// Segments without field sync after which the signal counts as having none.
const MAX_UNLOCKED_SEGMENTS: usize = 3 * FIELD_SEGMENTS;

/// The receiver's configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RxConfig {
    /// Complex samples per second, from 5.45 MS/s; the middle of the channel is at 0 Hz.
    pub sample_rate_hz: f64,
}

/// The receiver cannot be created.
#[derive(Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiverError {
    /// The sample rate is outside the receiver's range.
    #[error(
        "the sample rate is {rate_hz} Hz, at which an ATSC channel cannot be received: choose a \
         rate from {MIN_SAMPLE_RATE_HZ} to {MAX_SAMPLE_RATE_HZ} Hz, for example 6.25e6"
    )]
    SampleRate {
        /// The requested rate.
        rate_hz: f64,
    },
}

/// The front end of the receiver.
#[derive(Debug)]
pub struct FrontEnd {
    sample_rate_hz: f64,
    monitor: Arc<Monitor>,
    chunk: Vec<Sample>,
    stage: Stage,
    /// Samples so far, missing ones included, without those that wait for a whole chunk.
    passed: u64,
}

#[derive(Debug)]
enum Stage {
    Searching(Box<PilotFinder>),
    Receiving(Box<Receiving>),
}

/// The stages that run after the pilot is found.
#[derive(Debug)]
struct Receiving {
    demodulator: Demodulator,
    sync: SegmentSync,
    fields: FieldTracker,
    /// Whether the signal was absent at the last segment.
    held: bool,
    /// Segments since the segment sync was found or the field lock lost.
    unlocked: usize,
    /// Samples of the stream before the demodulator's first.
    before: u64,
}

/// The reason why tracking ends.
enum Ended {
    NoSegmentSync,
    NoFieldSync,
}

impl FrontEnd {
    /// Creates a front end in its initial state.
    ///
    /// # Errors
    /// [`ReceiverError`] when the configuration makes no sense.
    pub fn new(config: RxConfig, monitor: Arc<Monitor>) -> Result<Self, ReceiverError> {
        let sample_rate_hz = config.sample_rate_hz;
        if !(MIN_SAMPLE_RATE_HZ..=MAX_SAMPLE_RATE_HZ).contains(&sample_rate_hz) {
            return Err(ReceiverError::SampleRate { rate_hz: sample_rate_hz });
        }
        Ok(Self {
            sample_rate_hz,
            monitor,
            chunk: Vec::with_capacity(CHUNK_SAMPLES),
            stage: Stage::Searching(Box::new(PilotFinder::new(sample_rate_hz))),
            passed: 0,
        })
    }

    /// Returns the samples per second.
    #[must_use]
    pub fn sample_rate_hz(&self) -> f64 {
        self.sample_rate_hz
    }

    /// Returns the monitor of this receiver.
    #[must_use]
    pub fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    /// Takes samples; passes on every segment whose position in its field is known.
    pub fn process(&mut self, samples: &[Sample], on_segment: &mut dyn FnMut(&Segment)) {
        let mut rest = samples;
        while !rest.is_empty() {
            let whole = rest.split_at_checked(CHUNK_SAMPLES);
            if let Some((now, later)) = whole.filter(|_| self.chunk.is_empty()) {
                self.monitor.samples.add(CHUNK_SAMPLES as u64);
                self.process_chunk(now, on_segment);
                rest = later;
                continue;
            }
            let room = CHUNK_SAMPLES - self.chunk.len();
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.chunk.extend_from_slice(now);
            rest = later;
            if self.chunk.len() == CHUNK_SAMPLES {
                self.flush(on_segment);
            }
        }
    }

    /// Reports that `missing` samples were lost between those taken so far and the next. Over a
    /// short gap all loops keep their state; after a long one, or without a signal, the search
    /// starts again.
    pub fn gap(&mut self, missing: u64, on_segment: &mut dyn FnMut(&Segment)) {
        self.flush(on_segment);
        self.monitor.add_gap(missing);
        self.passed = self.passed.saturating_add(missing);
        let receiving = match &mut self.stage {
            Stage::Searching(finder) => {
                return self.monitor.bad_samples.add(finder.restart() as u64);
            }
            Stage::Receiving(receiving) => receiving,
        };
        if missing as f64 > MAX_BRIDGED_S * self.sample_rate_hz {
            self.monitor.enter(LockState::Starting);
            return self.search();
        }
        let silence = [Sample::default(); CHUNK_SAMPLES];
        let mut left = missing as usize;
        let mut outcome = Ok(());
        while left > 0 && outcome.is_ok() {
            let count = left.min(CHUNK_SAMPLES);
            outcome = receiving.process(&silence[..count], true, &self.monitor, on_segment);
            left -= count;
        }
        self.conclude(outcome);
    }

    /// Processes the samples that still wait for a whole chunk, at the end of a stream.
    pub fn finish(&mut self, on_segment: &mut dyn FnMut(&Segment)) {
        self.flush(on_segment);
        if let Stage::Searching(finder) = &mut self.stage {
            self.monitor.bad_samples.add(finder.restart() as u64);
        }
    }

    /// Processes the samples that wait for a whole chunk.
    fn flush(&mut self, on_segment: &mut dyn FnMut(&Segment)) {
        let mut chunk = std::mem::take(&mut self.chunk);
        self.monitor.samples.add(chunk.len() as u64);
        self.process_chunk(&chunk, on_segment);
        chunk.clear();
        self.chunk = chunk;
    }

    fn search(&mut self) {
        self.stage = Stage::Searching(Box::new(PilotFinder::new(self.sample_rate_hz)));
    }

    fn process_chunk(&mut self, chunk: &[Sample], on_segment: &mut dyn FnMut(&Segment)) {
        self.passed = self.passed.saturating_add(chunk.len() as u64);
        match &mut self.stage {
            Stage::Searching(finder) => match finder.push(chunk) {
                PilotSearch::Unfinished => {}
                PilotSearch::Absent { bad } => {
                    self.monitor.bad_samples.add(bad as u64);
                    self.monitor.enter(LockState::NoPilot);
                }
                PilotSearch::Found { offset_hz } => {
                    // The searched samples are received, too.
                    let piece = finder.take_piece();
                    self.monitor.enter(LockState::Pilot);
                    self.monitor.pilot_offset_hz.set(offset_hz);
                    let before = self.passed - piece.len() as u64;
                    let mut receiving = Receiving::new(self.sample_rate_hz, offset_hz, before);
                    let outcome = piece
                        .chunks(CHUNK_SAMPLES)
                        .try_for_each(|c| receiving.process(c, false, &self.monitor, on_segment));
                    self.stage = Stage::Receiving(Box::new(receiving));
                    self.conclude(outcome);
                }
            },
            Stage::Receiving(receiving) => {
                let outcome = receiving.process(chunk, false, &self.monitor, on_segment);
                self.conclude(outcome);
            }
        }
    }

    fn conclude(&mut self, outcome: Result<(), Ended>) {
        let Err(ended) = outcome else { return };
        self.monitor.enter(match ended {
            Ended::NoSegmentSync => LockState::NoSegmentSync,
            Ended::NoFieldSync => LockState::NoFieldSync,
        });
        self.search();
    }
}

impl Receiving {
    fn new(sample_rate_hz: f64, offset_hz: f64, before: u64) -> Self {
        Self {
            demodulator: Demodulator::new(sample_rate_hz, offset_hz),
            sync: SegmentSync::new(),
            fields: FieldTracker::new(),
            held: false,
            unlocked: 0,
            before,
        }
    }

    /// Takes samples, or in a `gap` their substitutes.
    fn process(
        &mut self,
        chunk: &[Sample],
        gap: bool,
        monitor: &Monitor,
        on_segment: &mut dyn FnMut(&Segment),
    ) -> Result<(), Ended> {
        let bad = self.demodulator.push(chunk, gap || self.sync.is_held());
        monitor.bad_samples.add(bad as u64);
        let mut block = SymbolBlock::default();
        while self.demodulator.next_block(&mut block, self.order(gap)) {
            match self.sync.push(&block, gap) {
                None => {}
                Some(SyncOutput::Found(change)) => {
                    self.demodulator.adjust(change.shift, change.rate);
                    self.fields = FieldTracker::new();
                    (self.held, self.unlocked) = (false, 0);
                    self.demodulator.reacquire();
                    monitor.enter(LockState::SegmentSync);
                }
                Some(SyncOutput::Segment(segment, change)) => {
                    let start = self.before + self.demodulator.before(SEGMENT_SYMBOLS);
                    segment.segment.set_at_sample(start);
                    self.demodulator.adjust(change.shift, change.rate);
                    let (step, placed) = self.fields.place(segment);
                    if placed {
                        on_segment(&segment.segment);
                    }
                    self.report(step, monitor)?;
                    self.report_hold(monitor);
                }
                Some(SyncOutput::Absent) => return Err(Ended::NoSegmentSync),
            }
        }
        Ok(())
    }

    /// Returns the requirements of the next block.
    fn order(&self, gap: bool) -> BlockOrder {
        let whole = self.fields.wants_whole();
        BlockOrder {
            held: gap || self.sync.is_held(),
            imaginary: if whole { Places::ALL } else { self.sync.imaginary() },
        }
    }

    /// Reports when the signal disappears and when it returns.
    fn report_hold(&mut self, monitor: &Monitor) {
        let held = self.sync.is_held();
        if held == self.held {
            return;
        }
        self.held = held;
        if held {
            return monitor.enter(LockState::Pilot);
        }
        self.demodulator.reacquire();
        monitor.enter(LockState::SegmentSync);
        if self.fields.is_locked() {
            monitor.enter(LockState::Locked);
        }
    }

    fn report(&mut self, step: FieldStep, monitor: &Monitor) -> Result<(), Ended> {
        match step {
            FieldStep::Unlocked => {
                self.unlocked += 1;
                if self.unlocked == MAX_UNLOCKED_SEGMENTS {
                    return Err(Ended::NoFieldSync);
                }
            }
            FieldStep::Lost => {
                self.unlocked = 0;
                if !self.sync.is_held() {
                    monitor.enter(LockState::SegmentSync);
                }
            }
            FieldStep::Locked(_) => {
                // A lock that replaces another one is a separate event.
                monitor.enter(LockState::SegmentSync);
                monitor.enter(LockState::Locked);
                self.report_field(monitor);
            }
            FieldStep::Placed(SegmentKind::FieldSync(_)) => self.report_field(monitor),
            FieldStep::Placed(SegmentKind::Data(_)) => {}
        }
        Ok(())
    }

    fn report_field(&self, monitor: &Monitor) {
        monitor.fields.add(1);
        monitor.pilot_offset_hz.set(self.demodulator.pilot_offset_hz());
        monitor.clock_offset_ppm.set(-1e6 * self.sync.clock_rate());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_impossible_rate_is_refused_with_advice() {
        for rate_hz in [0.0, -1.0, f64::NAN, 5e6, 1e9] {
            let error = FrontEnd::new(RxConfig { sample_rate_hz: rate_hz }, Arc::default());
            let text = error.unwrap_err().to_string();
            assert!(text.contains("choose a rate from 5450000 to 64000000 Hz"), "{text}");
        }
    }
}
