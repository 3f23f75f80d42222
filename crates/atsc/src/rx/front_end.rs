//! Samples to segments: everything with feedback, from pilot search to field sync.

use super::carrier::SymbolBlock;
use super::demodulator::Demodulator;
use super::field_tracker::{FieldStep, FieldTracker};
use super::pilot::{PilotFinder, PilotSearch};
use super::segment_sync::{SegmentSync, SyncOutput};
use super::timing::TimingChange;
use crate::Sample;
use crate::monitor::{LockState, Monitor};
use crate::params::{FIELD_SEGMENTS, MIN_SAMPLE_RATE_HZ};
use crate::segment::{Segment, SegmentKind};
use std::sync::Arc;

/// The fastest sample rate taken: beyond it the matched filter grows too long.
pub const MAX_SAMPLE_RATE_HZ: f64 = 64e6;

/// Samples are taken in chunks of this, so that results do not depend on how they arrive.
pub const CHUNK_SAMPLES: usize = 2048;

/// Segments without any field sync after which there is none.
const MAX_UNLOCKED_SEGMENTS: usize = 3 * FIELD_SEGMENTS;

/// How to receive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RxConfig {
    /// Complex samples per second, from 6 MS/s; the middle of the channel is at 0 Hz.
    pub sample_rate_hz: f64,
}

/// A receiver cannot be made.
#[derive(Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RxError {
    /// The sample rate is outside what the receiver takes.
    #[error(
        "a sample rate of {rate_hz} Hz does not carry 8-VSB: \
         choose from {MIN_SAMPLE_RATE_HZ} to {MAX_SAMPLE_RATE_HZ} Hz (6.25e6 suffices)"
    )]
    SampleRate {
        /// The rate asked for.
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
}

#[derive(Debug)]
enum Stage {
    Searching(Box<PilotFinder>),
    Receiving(Box<Receiving>),
}

/// The stages that run once there is a pilot.
#[derive(Debug)]
struct Receiving {
    demodulator: Demodulator,
    sync: SegmentSync,
    fields: FieldTracker,
    /// Segments since the segment sync was found or the field lock lost.
    unlocked: usize,
}

/// Why receiving ends.
enum Ended {
    NoSegmentSync,
    NoFieldSync,
}

impl FrontEnd {
    /// A front end before its first sample.
    ///
    /// # Errors
    /// [`RxError`] when the configuration makes no sense.
    pub fn new(config: RxConfig, monitor: Arc<Monitor>) -> Result<Self, RxError> {
        let sample_rate_hz = config.sample_rate_hz;
        if !(MIN_SAMPLE_RATE_HZ..=MAX_SAMPLE_RATE_HZ).contains(&sample_rate_hz) {
            return Err(RxError::SampleRate { rate_hz: sample_rate_hz });
        }
        Ok(Self {
            sample_rate_hz,
            monitor,
            chunk: Vec::with_capacity(CHUNK_SAMPLES),
            stage: Stage::Searching(Box::new(PilotFinder::new(sample_rate_hz))),
        })
    }

    /// The numbers of this receiver.
    #[must_use]
    pub fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    /// Takes samples; hands on every segment whose place in its field is known.
    pub fn process(&mut self, samples: &[Sample], on_segment: &mut dyn FnMut(&Segment)) {
        let mut rest = samples;
        while !rest.is_empty() {
            let room = CHUNK_SAMPLES - self.chunk.len();
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.chunk.extend_from_slice(now);
            rest = later;
            if self.chunk.len() == CHUNK_SAMPLES {
                let chunk = std::mem::take(&mut self.chunk);
                self.monitor.add_samples(CHUNK_SAMPLES as u64);
                self.process_chunk(&chunk, on_segment);
                self.chunk = chunk;
                self.chunk.clear();
            }
        }
    }

    fn process_chunk(&mut self, chunk: &[Sample], on_segment: &mut dyn FnMut(&Segment)) {
        match &mut self.stage {
            Stage::Searching(finder) => match finder.push(chunk) {
                PilotSearch::Unfinished => {}
                PilotSearch::Absent => self.monitor.enter(LockState::NoPilot),
                PilotSearch::Found { offset_hz } => {
                    // What was searched is received too.
                    let piece = finder.take_piece();
                    self.monitor.enter(LockState::Pilot);
                    self.monitor.set_pilot_offset_hz(offset_hz);
                    let mut receiving = Receiving::new(self.sample_rate_hz, offset_hz);
                    let outcome = piece
                        .chunks(CHUNK_SAMPLES)
                        .try_for_each(|c| receiving.process(c, &self.monitor, on_segment));
                    self.stage = Stage::Receiving(Box::new(receiving));
                    self.conclude(outcome);
                }
            },
            Stage::Receiving(receiving) => {
                let outcome = receiving.process(chunk, &self.monitor, on_segment);
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
        self.stage = Stage::Searching(Box::new(PilotFinder::new(self.sample_rate_hz)));
    }
}

impl Receiving {
    fn new(sample_rate_hz: f64, offset_hz: f64) -> Self {
        Self {
            demodulator: Demodulator::new(sample_rate_hz, offset_hz),
            sync: SegmentSync::new(),
            fields: FieldTracker::new(),
            unlocked: 0,
        }
    }

    fn process(
        &mut self,
        chunk: &[Sample],
        monitor: &Monitor,
        on_segment: &mut dyn FnMut(&Segment),
    ) -> Result<(), Ended> {
        monitor.add_bad_samples(self.demodulator.push(chunk) as u64);
        let mut block = SymbolBlock::default();
        while self.demodulator.next_block(&mut block) {
            let Self { demodulator, sync, fields, unlocked } = self;
            match sync.push(&block) {
                None => {}
                Some(SyncOutput::Found(TimingChange { shift, rate })) => {
                    demodulator.adjust(shift, rate);
                    *fields = FieldTracker::new();
                    *unlocked = 0;
                    monitor.enter(LockState::SegmentSync);
                }
                Some(SyncOutput::Segment(rows, TimingChange { shift, rate })) => {
                    demodulator.adjust(shift, rate);
                    let (step, segment) = fields.place(rows);
                    if let Some(segment) = &segment {
                        on_segment(segment);
                    }
                    self.report(step, monitor)?;
                }
                Some(SyncOutput::Lost) => {
                    demodulator.reacquire();
                    monitor.enter(LockState::Pilot);
                }
                Some(SyncOutput::Absent) => return Err(Ended::NoSegmentSync),
            }
        }
        Ok(())
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
                monitor.enter(LockState::SegmentSync);
            }
            FieldStep::Locked(_) => {
                // A lock that replaces another one is an event of its own.
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
        monitor.add_field();
        monitor.set_pilot_offset_hz(self.demodulator.pilot_offset_hz());
        monitor.set_clock_offset_ppm(-1e6 * self.sync.clock_rate());
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
            assert!(text.contains("choose from 6000000 to 64000000 Hz"), "{text}");
        }
    }
}
