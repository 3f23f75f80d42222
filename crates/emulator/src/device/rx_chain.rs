//! The sources of a receive channel's samples, and their way where they are stored: antenna, DDC,
//! buffer.

use super::gain_timeline::GainTimeline;
use super::rx_channel::{SEGMENTS_MAX, Stretch};
use super::transmitted::{Ring, TransmittedSamples};
use crate::antenna::{Antenna, AntennaSource, Sc16, parts, sc16};
use crate::converter::{Ddc, PIECE};
use crate::front_end::Reception;
use crate::scene::SceneReceiver;
use crate::time::DeviceClock;
use millstream_wire::regs::dsp::DspMap;

/// The longest time between two calls while a channel receives, seconds: so that a slow stream's
/// packet is not processed at once.
const STEP_S: f64 = 1e-3;

/// Buffers of this size are for rates at which the first pass through new memory loses samples: it
/// costs tens of milliseconds.
const FAST_SAMPLES: u64 = 1 << 24;

/// The source of a channel, with the memory that it needs.
pub(crate) enum RxSource {
    /// A function of the timestamp, or a source that behaves like one.
    Signal(Box<dyn Antenna>),
    /// Samples that are processed at their time.
    Chain(Box<RxChain>),
}

impl RxSource {
    /// Returns the source of a channel with a packet buffer of this size: the scene if there is
    /// one, and behind a DDC if there is one.
    pub fn new(
        source: AntennaSource,
        scene: Option<SceneReceiver>,
        rx_buffer_samples: u64,
        ddc: Option<DspMap>,
    ) -> Self {
        let input = match (scene, source) {
            (Some(scene), _) => ChainInput::Scene(Box::new(scene)),
            (None, AntennaSource::Signal(antenna)) if ddc.is_some() => ChainInput::Antenna(antenna),
            (None, AntennaSource::Signal(antenna)) => return Self::Signal(antenna),
            (None, AntennaSource::Loopback(cable)) => {
                ChainInput::Loopback(cable.channel, cable.delay_samples)
            }
        };
        Self::Chain(Box::new(RxChain::new(input, rx_buffer_samples, ddc)))
    }

    /// Prepares for a sample rate.
    pub fn prepare(&mut self, rate_hz: f64) {
        match self {
            Self::Signal(antenna) => antenna.prepare(rate_hz),
            Self::Chain(chain) => chain.prepare(rate_hz),
        }
    }

    /// Writes the next samples to send, with the timestamps from `timestamp` on.
    pub fn fill(&mut self, timestamp: u64, out: &mut [Sc16]) {
        match self {
            Self::Signal(antenna) => antenna.fill(timestamp, out),
            Self::Chain(chain) => chain.take(out),
        }
    }

    /// Returns how many samples the antenna has replaced by zeros so far.
    pub fn starved_samples(&self) -> u64 {
        match self {
            Self::Signal(antenna) => antenna.starved_samples(),
            Self::Chain(chain) => match &chain.input {
                ChainInput::Antenna(antenna) => antenna.starved_samples(),
                ChainInput::Loopback(..) | ChainInput::Scene(_) => 0,
            },
        }
    }

    /// Drops received samples that were not sent.
    pub fn clear(&mut self) {
        if let Self::Chain(chain) = self {
            chain.read = chain.written;
        }
    }

    /// Returns the chain, if there is one.
    pub fn chain(&mut self) -> Option<&mut RxChain> {
        match self {
            Self::Chain(chain) => Some(chain),
            Self::Signal(_) => None,
        }
    }
}

/// The samples that enter a chain.
pub(crate) enum ChainInput {
    Antenna(Box<dyn Antenna>),
    /// What the transmit channel of this index sent, this number of ticks before.
    Loopback(usize, u64),
    /// Stations, through the front end.
    Scene(Box<SceneReceiver>),
}

/// Ticks in a second of the wall clock beyond which no machine processes each sample of a scene:
/// then a scene is heard at the rate behind the DDC.
const EVERY_SAMPLE_HZ: f64 = 70e6;

/// Processes samples at their time, and stores them until their packets are sent.
pub(crate) struct RxChain {
    input: ChainInput,
    ddc: Option<Ddc>,
    /// The burst in progress hears the scene at the rate behind the DDC. Its filters are then
    /// ideal.
    direct: bool,
    /// The rate for which the input is prepared, Hz.
    prepared_hz: f64,
    /// Ticks behind the last sample of such a burst.
    remainder: u64,
    raw: Box<[Sc16]>,
    ring: Ring,
    written: u64,
    read: u64,
}

impl RxChain {
    /// Returns a chain whose buffer has `buffer_samples`.
    pub fn new(input: ChainInput, buffer_samples: u64, ddc: Option<DspMap>) -> Self {
        // Bursts that find the buffer full still get one sample each, for EOB.
        let samples = buffer_samples as usize + 2 * SEGMENTS_MAX;
        let mut ring = Ring::new(samples);
        if buffer_samples >= FAST_SAMPLES {
            ring.touch();
        }
        Self {
            input,
            ddc: ddc.map(Ddc::new),
            direct: false,
            prepared_hz: 0.0,
            remainder: 0,
            raw: vec![Sc16::default(); PIECE].into(),
            ring,
            written: 0,
            read: 0,
        }
    }

    /// Its DDC, if there is one.
    pub fn ddc(&mut self) -> Option<&mut Ddc> {
        self.ddc.as_mut()
    }

    /// Returns the frequency of the middle of a scene behind the DDC, received like this at this
    /// master clock rate; `None` for other antennas, which have no frequency.
    pub fn centre_hz(&self, reception: &Reception, clock_hz: f64) -> Option<f64> {
        let shift = self.ddc.as_ref().map_or(0.0, Ddc::shift_cycles) * clock_hz;
        matches!(self.input, ChainInput::Scene(_)).then_some(reception.lo_hz - shift)
    }

    /// Prepares for a sample rate.
    pub fn prepare(&mut self, rate_hz: f64) {
        if rate_hz == self.prepared_hz {
            return;
        }
        self.prepared_hz = rate_hz;
        match &mut self.input {
            ChainInput::Antenna(antenna) => antenna.prepare(rate_hz),
            ChainInput::Scene(scene) => scene.prepare(rate_hz),
            ChainInput::Loopback(..) => {}
        }
    }

    /// Returns the transmit channel that it receives, if it does.
    pub fn loopback(&self) -> Option<usize> {
        match self.input {
            ChainInput::Loopback(channel, _) => Some(channel),
            ChainInput::Antenna(_) | ChainInput::Scene(_) => None,
        }
    }

    /// Returns the most ticks until the next call.
    pub fn step_ticks(&self, keeper: &DeviceClock) -> u64 {
        let clock = keeper.clock();
        ((clock.rate_hz() * clock.time_scale() * STEP_S) as u64).max(1)
    }

    /// Processes the samples of a stretch, which the gain multiplies before the DDC; `air` is what
    /// the channel of a loopback transmitted.
    pub fn record(
        &mut self,
        stretch: &Stretch,
        keeper: &DeviceClock,
        reception: &Reception,
        (gain, mut air): (&GainTimeline, Option<&mut TransmittedSamples>),
    ) {
        if stretch.begins {
            self.begin(stretch.decimation, keeper);
        }
        if self.direct {
            return self.record_direct(stretch, keeper, reception, gain);
        }
        let mut tick = stretch.ticks.start;
        while tick < stretch.ticks.end {
            let count = (stretch.ticks.end - tick).min(PIECE as u64);
            let (time, raw) = (keeper.timestamp_of(tick), &mut self.raw[..count as usize]);
            match (&mut self.input, &mut air) {
                (ChainInput::Antenna(antenna), _) => antenna.fill(time, raw),
                (ChainInput::Loopback(_, delay), Some(air)) => air.read(tick, *delay, raw),
                (ChainInput::Loopback(..), None) => raw.fill(Sc16::default()),
                (ChainInput::Scene(scene), _) => scene.fill(reception, time, raw),
            }
            gain.apply(tick, 1, raw);
            let samples = match &mut self.ddc {
                Some(ddc) => ddc.process(time, raw),
                None => raw,
            };
            self.written = self.ring.write(self.written, samples);
            tick += count;
        }
    }

    /// Begins a burst.
    fn begin(&mut self, decimation: u64, keeper: &DeviceClock) {
        let Some(ddc) = &mut self.ddc else { return };
        ddc.begin(decimation);
        let clock = keeper.clock();
        let too_fast = clock.rate_hz() * clock.time_scale() > EVERY_SAMPLE_HZ;
        self.direct = too_fast && matches!(self.input, ChainInput::Scene(_));
        self.remainder = 0;
        let decimation = if self.direct { decimation } else { 1 };
        self.prepare(clock.rate_hz() / decimation as f64);
    }

    /// Processes the samples of a stretch of a scene at the rate behind the DDC: its stations are
    /// as far from the middle as the shift moves them, and those beyond the rate are not heard.
    fn record_direct(
        &mut self,
        stretch: &Stretch,
        keeper: &DeviceClock,
        reception: &Reception,
        complex_gain: &GainTimeline,
    ) {
        let (Some(ddc), ChainInput::Scene(scene)) = (&mut self.ddc, &mut self.input) else {
            return;
        };
        let decimation = stretch.decimation;
        let mut left = self.remainder + (stretch.ticks.end - stretch.ticks.start);
        let mut tick = stretch.ticks.start - self.remainder.min(stretch.ticks.start);
        while left >= decimation {
            let count = (left / decimation).min(PIECE as u64);
            let time = keeper.timestamp_of(tick);
            let (cycles, gain) = ddc.direct(time);
            let shift_hz = cycles * keeper.clock().rate_hz();
            let moved = Reception { lo_hz: reception.lo_hz - shift_hz, ..*reception };
            let out = &mut self.raw[..count as usize];
            scene.fill(&moved, time / decimation, out);
            complex_gain.apply(tick, decimation, out);
            if gain != 1.0 {
                out.iter_mut().for_each(|sample| *sample = scaled(*sample, gain));
            }
            self.written = self.ring.write(self.written, out);
            (tick, left) = (tick + count * decimation, left - count * decimation);
        }
        self.remainder = left;
    }

    /// Removes samples from the buffer.
    pub fn take(&mut self, out: &mut [Sc16]) {
        self.read = self.ring.read(self.read, out);
    }
}

/// Returns a sample times `gain`, saturating.
fn scaled(sample: Sc16, gain: f32) -> Sc16 {
    let [i, q] = parts(sample).map(|part| (f32::from(part) * gain) as i16);
    sc16(i, q)
}
