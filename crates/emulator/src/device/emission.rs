//! Where the transmitted samples of a channel go.

use super::transmitted::TransmittedSamples;
use crate::antenna::Sc16;
use crate::time::DeviceClock;
use crate::tx_out::{Begin, BurstEnd, Recorder};

/// The listeners of a transmit channel: a loopback, a file, or nobody.
#[derive(Default)]
pub(crate) struct Emission {
    pub air: Option<TransmittedSamples>,
    pub recorder: Option<Recorder>,
}

impl Emission {
    /// Whether nobody listens, so that the samples' values do not matter.
    pub fn is_unheard(&self) -> bool {
        self.air.is_none() && self.recorder.is_none()
    }

    /// Transmits `samples` from tick `tick` on; `follows` when no tick lies between them and the
    /// last ones of this burst.
    pub fn send(&mut self, keeper: &DeviceClock, tick: u64, follows: bool, samples: &[Sc16]) {
        if let Some(air) = &mut self.air {
            air.send(tick, samples);
        }
        if let Some(recorder) = &mut self.recorder {
            let timestamp = keeper.timestamp_of(tick);
            let begin = Begin { timestamp, rate_hz: keeper.clock().rate_hz() };
            recorder.record(begin, follows, samples);
        }
    }

    /// A burst ends.
    pub fn end(&mut self, how: BurstEnd) {
        if let Some(recorder) = &mut self.recorder {
            recorder.end(how);
        }
    }

    /// What was on the air is gone, and ticks may begin anew.
    pub fn restart(&mut self) {
        if let Some(air) = &mut self.air {
            air.restart();
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.flush();
        }
    }

    /// Samples that should be in the file and are not.
    pub fn lost_samples(&self) -> u64 {
        self.recorder.as_ref().map_or(0, Recorder::lost_samples)
    }
}
