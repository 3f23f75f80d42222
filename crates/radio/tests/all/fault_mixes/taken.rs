//! What a stream of a mix has received.

use std::time::Duration;

use millstream_radio::{RxError, RxEvent, RxStreamer};

use super::mix::Mix;
use super::rig::Rig;
use crate::common::PATIENCE;
use crate::common::shrink::tell;

/// The received data: stretches of contiguous time, and the samples missing by the events.
#[derive(Debug, Default)]
pub struct Taken {
    pub runs: Vec<(u64, u64)>,
    pub missing: u64,
    /// The errors of recoveries, which only false answers explain.
    pub errors: u64,
    may_err: bool,
    /// A message of the radio or its acknowledgement may be lost: then the radio executes nothing.
    may_stop: bool,
    due: Option<u64>,
}

/// Checks that samples from `ticks` on are those of their times.
pub fn check_ramp(ticks: u64, samples: &[[i16; 2]]) {
    for (at, [low, high]) in (ticks..).zip(samples) {
        let ramp = u32::from(*high as u16) << 16 | u32::from(*low as u16);
        assert_eq!(ramp, at as u32, "a sample of another time");
    }
}

/// Adds the samples from `ticks` up to `end` to stretches of contiguous time.
pub fn note_run(runs: &mut Vec<(u64, u64)>, ticks: u64, end: u64) {
    match runs.last_mut() {
        Some((from, samples)) if *from + *samples == ticks => *samples += end - ticks,
        _ => runs.push((ticks, end - ticks)),
    }
}

/// The time-out of each call.
const TIMEOUT: Duration = Duration::from_millis(20);

impl Taken {
    pub fn of(mix: &Mix) -> Self {
        let (may_err, may_stop) = (!mix.answers.is_empty(), mix.loses_control());
        Self { may_err, may_stop, ..Self::default() }
    }

    /// Counts an error; returns whether the stream goes on.
    fn take_error(&mut self, error: &RxError) -> bool {
        tell(format_args!("  {error}"));
        let has_stopped = self.may_stop && matches!(error, RxError::SamplesStopped { .. });
        assert!(self.may_err || has_stopped, "{error}");
        self.errors += 1;
        // It gave up by itself, or will not go on.
        !has_stopped && !matches!(error, RxError::NotRestarted { .. })
    }

    /// Receives while `more`; every sample is checked against the time that the stream reports for
    /// it.
    pub fn receive(
        &mut self,
        rig: &impl Rig,
        stream: &mut RxStreamer,
        more: impl Fn(&RxStreamer) -> bool,
    ) {
        let mut block = vec![[0i16; 2]; 4099];
        let until = rig.now() + 3 * PATIENCE;
        while more(stream) {
            assert!(rig.now() < until, "it hangs: {:?} {}", stream.counters(), stream.ledger());
            let latest = rig.excess_max().map(|excess| rig.now() + TIMEOUT + excess);
            let received = stream.recv(&mut block, TIMEOUT);
            assert!(latest.is_none_or(|latest| rig.now() <= latest), "it takes too long");
            stream.ledger().balance().unwrap();
            let meta = match received {
                Ok(meta) => meta,
                Err(error) => {
                    if let RxError::SamplesStopped { samples, .. } = error {
                        self.missing += samples;
                        self.due = self.due.map(|due| due + samples);
                    }
                    if self.take_error(&error) {
                        continue;
                    }
                    return;
                }
            };
            self.missing += meta.event.missing();
            if !matches!(meta.event, RxEvent::None | RxEvent::Timeout) {
                tell(format_args!("  {:?} then {:?}", meta.event, meta.time_ticks));
            }
            if let Some(due) = &mut self.due {
                *due = match meta.event {
                    RxEvent::ClockJump { ticks, .. } => due.wrapping_add(ticks as u64),
                    event => *due + event.missing(),
                };
            }
            let Some(ticks) = meta.time_ticks.filter(|_| meta.samples > 0) else { continue };
            assert_eq!(ticks, self.due.unwrap_or(ticks), "the events tell how time goes on");
            check_ramp(ticks, &block[..meta.samples]);
            let end = ticks + meta.samples as u64;
            self.due = Some(end);
            note_run(&mut self.runs, ticks, end);
        }
    }
}
