//! The receiver of a channel's transmitted samples: a file, or memory.

use super::{Begin, BurstEnd};
use crate::antenna::Sc16;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Samples that a radio transmitted without a gap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayedStretch {
    /// The device's time of the first sample, ticks.
    pub time_ticks: u64,
    /// The samples, as on the wire.
    pub samples: Vec<[u8; 4]>,
}

/// The samples that a channel has transmitted, in memory; clones share them.
#[derive(Debug, Clone, Default)]
pub struct PlayedSamples(Arc<Mutex<Vec<PlayedStretch>>>);

impl PlayedSamples {
    /// Takes the stretches so far. Samples that come next begin another one.
    #[must_use]
    pub fn take(&self) -> Vec<PlayedStretch> {
        std::mem::take(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<PlayedStretch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records the samples that a channel transmits.
pub(crate) trait Recorder: Send {
    /// Takes samples that follow the last ones if `follows` is set; otherwise they begin a stretch.
    fn record(&mut self, begin: Begin, follows: bool, samples: &[Sc16]);

    /// Ends the burst: its samples are written to the disk.
    fn end(&mut self, _how: BurstEnd) {}

    /// Writes all samples to the disk, because none will follow.
    fn flush(&mut self) {}

    /// Returns the samples so far that are missing in the file.
    fn lost_samples(&self) -> u64 {
        0
    }

    /// Waits until everything is written, metadata included.
    fn close(&mut self) {}
}

impl Recorder for PlayedSamples {
    fn record(&mut self, begin: Begin, follows: bool, samples: &[Sc16]) {
        let mut stretches = self.lock();
        match stretches.last_mut().filter(|_| follows) {
            Some(stretch) => stretch.samples.extend_from_slice(samples),
            None => stretches
                .push(PlayedStretch { time_ticks: begin.timestamp, samples: samples.to_vec() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_in_memory_are_cut_where_they_do_not_follow() {
        let played = PlayedSamples::default();
        let mut recorder = played.clone();
        let begin = |timestamp| Begin { timestamp, rate_hz: 1e6 };
        recorder.record(begin(10), false, &[[1; 4], [2; 4]]);
        recorder.record(begin(12), true, &[[3; 4]]);
        recorder.record(begin(20), false, &[[4; 4]]);
        let stretch = |time_ticks, samples: &[[u8; 4]]| PlayedStretch {
            time_ticks,
            samples: samples.to_vec(),
        };
        assert_eq!(played.take(), [stretch(10, &[[1; 4], [2; 4], [3; 4]]), stretch(20, &[[4; 4]])]);
        recorder.record(begin(21), true, &[[5; 4]]);
        assert_eq!(played.take(), [stretch(21, &[[5; 4]])], "what was taken is gone");
    }
}
