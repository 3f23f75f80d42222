//! The receiver of a channel's transmitted samples: a file, or memory.

use super::{Begin, BurstEnd, FileOutcome, FileRecorder};
use crate::Error;
use crate::antenna::Sc16;
use millstream_output::Existing;
use std::path::Path;
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
pub(crate) enum Recorder {
    /// To a file, by a thread.
    File(FileRecorder),
    /// To memory.
    Memory(PlayedSamples),
}

impl Recorder {
    /// Creates the file `path` and starts its writer.
    ///
    /// # Errors
    /// Those of [`FileRecorder::create`].
    pub fn create(path: &Path, existing: Existing) -> Result<Self, Error> {
        FileRecorder::create(path, existing).map(Self::File)
    }

    /// Takes samples that follow the last ones if `follows` is set; otherwise they begin a stretch.
    pub fn record(&mut self, begin: Begin, follows: bool, samples: &[Sc16]) {
        match self {
            Self::File(file) => file.record(begin, follows, samples),
            Self::Memory(played) => {
                let mut stretches = played.lock();
                match stretches.last_mut().filter(|_| follows) {
                    Some(stretch) => stretch.samples.extend_from_slice(samples),
                    None => stretches.push(PlayedStretch {
                        time_ticks: begin.timestamp,
                        samples: samples.to_vec(),
                    }),
                }
            }
        }
    }

    /// Ends the burst.
    pub fn end(&mut self, how: BurstEnd) {
        if let Self::File(file) = self {
            file.end(how);
        }
    }

    /// Writes all samples to the disk, because none will follow.
    pub fn flush(&mut self) {
        if let Self::File(file) = self {
            file.flush();
        }
    }

    /// Returns the samples so far that are missing in the file.
    pub fn lost_samples(&self) -> u64 {
        match self {
            Self::File(file) => file.lost_samples(),
            Self::Memory(_) => 0,
        }
    }

    /// Returns the outcome of the file, if there is one.
    pub fn fate(&self) -> Option<Arc<FileOutcome>> {
        match self {
            Self::File(file) => Some(file.fate()),
            Self::Memory(_) => None,
        }
    }

    /// Waits until everything is written, metadata included.
    pub fn close(&mut self) {
        if let Self::File(file) = self {
            file.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_in_memory_are_cut_where_they_do_not_follow() {
        let played = PlayedSamples::default();
        let mut recorder = Recorder::Memory(played.clone());
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
