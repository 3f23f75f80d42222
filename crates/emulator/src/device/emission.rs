//! The destinations of a channel's transmitted samples.

use super::STRIDE_TICKS;
use super::gain_timeline::GainTimeline;
use super::transmitted::TransmittedSamples;
use crate::antenna::{AntennaSource, Sc16};
use crate::converter::{Duc, PIECE};
use crate::time::DeviceClock;
use crate::tx_out::{Begin, BurstEnd, Recorder};
use millstream_wire::regs::dsp::DspMap;

/// Returns the ways of the transmitted samples, with memory for the longest cable.
pub(super) fn of(
    sources: &[AntennaSource],
    recorders: Vec<Box<dyn Recorder>>,
    duc: Option<DspMap>,
) -> Box<[Emission]> {
    let mut recorders = recorders.into_iter();
    let emission = |_| {
        let duc = duc.map(|map| Box::new(Duc::new(map)));
        Emission { duc, air: None, recorder: recorders.next() }
    };
    let mut emissions: Box<[_]> = sources.iter().map(emission).collect();
    let cables = sources.iter().filter_map(|source| match source {
        AntennaSource::Loopback(cable) => Some(*cable),
        AntennaSource::Signal(_) => None,
    });
    let longest = cables.clone().map(|cable| cable.delay_samples).max().unwrap_or(0);
    for cable in cables {
        let memory = longest + 2 * STRIDE_TICKS;
        emissions[cable.channel].air = Some(TransmittedSamples::new(memory as usize));
    }
    emissions
}

/// The receivers of a transmit channel: a loopback, a file, or none.
#[derive(Default)]
pub(crate) struct Emission {
    /// The DUC before the radio, if there is one.
    pub duc: Option<Box<Duc>>,
    pub air: Option<TransmittedSamples>,
    pub recorder: Option<Box<dyn Recorder>>,
}

impl Emission {
    /// Returns whether there is no receiver, so that the samples' values are not needed.
    pub fn is_unheard(&self) -> bool {
        self.air.is_none() && self.recorder.is_none()
    }

    /// Returns the ticks of each of the host's samples in the next burst.
    pub fn interpolation(&self) -> u64 {
        self.duc.as_ref().map_or(1, |duc| duc.factor())
    }

    /// Returns the time with which a packet of the host reaches the radio.
    pub fn time_of(&mut self, time: Option<u64>, samples: u64, eob: bool) -> Option<u64> {
        match &mut self.duc {
            Some(duc) => duc.time_of(time, samples, eob),
            None => time,
        }
    }

    /// Begins a burst with this number of ticks for each of the host's samples.
    pub fn begin(&mut self, interpolation: u64) {
        if let Some(duc) = &mut self.duc {
            duc.begin(interpolation);
        }
    }

    /// Transmits `samples` of the host from tick `tick` on; with `follows` no tick lies between
    /// them and the last ones of this burst.
    pub fn send(
        &mut self,
        with: (&DeviceClock, &GainTimeline),
        tick: u64,
        follows: bool,
        samples: &[Sc16],
    ) {
        if self.is_unheard() {
            return;
        }
        match self.duc.take() {
            None => self.emit(with, tick, follows, samples),
            Some(mut duc) => {
                duc.process(with.0.timestamp_of(tick), samples, |before, piece| {
                    self.emit(with, tick + before, follows || before > 0, piece);
                });
                self.duc = Some(duc);
            }
        }
    }

    /// Sends samples of the radio, times its gain.
    fn emit(
        &mut self,
        (keeper, gain): (&DeviceClock, &GainTimeline),
        tick: u64,
        follows: bool,
        samples: &[Sc16],
    ) {
        if gain.is_one() {
            return self.leave(keeper, tick, follows, samples);
        }
        let mut piece = [Sc16::default(); PIECE];
        for (number, samples) in samples.chunks(PIECE).enumerate() {
            let (before, piece) = (number * PIECE, &mut piece[..samples.len()]);
            piece.copy_from_slice(samples);
            let at = tick + before as u64;
            gain.apply(at, 1, piece);
            self.leave(keeper, at, follows || before > 0, piece);
        }
    }

    fn leave(&mut self, keeper: &DeviceClock, tick: u64, follows: bool, samples: &[Sc16]) {
        if let Some(air) = &mut self.air {
            air.send(tick, samples);
        }
        if let Some(recorder) = &mut self.recorder {
            let timestamp = keeper.timestamp_of(tick);
            let begin = Begin { timestamp, rate_hz: keeper.clock().rate_hz() };
            recorder.record(begin, follows, samples);
        }
    }

    /// Ends a burst.
    pub fn end(&mut self, how: BurstEnd) {
        if let Some(recorder) = &mut self.recorder {
            recorder.end(how);
        }
    }

    /// Drops the signal transmitted so far; ticks may restart at 0.
    pub fn restart(&mut self) {
        if let Some(air) = &mut self.air {
            air.restart();
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.flush();
        }
    }

    /// Returns the samples that are missing in the file.
    pub fn lost_samples(&self) -> u64 {
        self.recorder.as_ref().map_or(0, |recorder| recorder.lost_samples())
    }
}
