//! The way of a channel's samples where blocks process them: antenna, DDC, buffer.

use super::rx_channel::{SEGMENTS_MAX, Stretch};
use super::transmitted::{Ring, TransmittedSamples};
use crate::antenna::{Antenna, Sc16};
use crate::converter::{Ddc, PIECE};
use crate::front_end::Reception;
use crate::scene::SceneReceiver;
use crate::time::DeviceClock;

/// The longest time between two calls while a channel receives, seconds: so that a slow stream's
/// packet is not processed at once.
const STEP_S: f64 = 1e-3;

/// The samples that enter a chain.
pub(crate) enum ChainInput {
    Antenna(Box<dyn Antenna>),
    /// What the transmit channel of this index sent, this number of ticks before.
    Loopback(usize, u64),
    /// Stations, through the front end.
    Scene(Box<SceneReceiver>),
}

/// Processes samples at their time, and stores them until their packets are sent.
pub(crate) struct RxChain {
    input: ChainInput,
    ddc: Option<Ddc>,
    raw: Box<[Sc16]>,
    ring: Ring,
    written: u64,
    read: u64,
}

impl RxChain {
    /// Returns a chain whose buffer has `buffer_samples`.
    pub fn new(input: ChainInput, buffer_samples: u64, has_ddc: bool) -> Self {
        // Bursts that find the buffer full still get one sample each, for EOB.
        let samples = buffer_samples as usize + 2 * SEGMENTS_MAX;
        Self {
            input,
            ddc: has_ddc.then(Ddc::new),
            raw: vec![Sc16::default(); PIECE].into(),
            ring: Ring::new(samples),
            written: 0,
            read: 0,
        }
    }

    /// Its DDC, if there is one.
    pub fn ddc(&mut self) -> Option<&mut Ddc> {
        self.ddc.as_mut()
    }

    /// Prepares for a sample rate.
    pub fn prepare(&mut self, rate_hz: f64) {
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

    /// Processes the samples of a stretch; `air` is what the channel of a loopback transmitted.
    pub fn record(
        &mut self,
        stretch: &Stretch,
        keeper: &DeviceClock,
        reception: &Reception,
        mut air: Option<&mut TransmittedSamples>,
    ) {
        if stretch.begins
            && let Some(ddc) = &mut self.ddc
        {
            ddc.begin(stretch.decimation);
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
            let samples = match &mut self.ddc {
                Some(ddc) => ddc.process(time, raw),
                None => raw,
            };
            self.written = self.ring.write(self.written, samples);
            tick += count;
        }
    }

    /// Removes samples from the buffer.
    pub fn take(&mut self, out: &mut [Sc16]) {
        self.read = self.ring.read(self.read, out);
    }

    /// Returns the zeros so far in place of unavailable samples.
    pub fn starved_samples(&self) -> u64 {
        match &self.input {
            ChainInput::Antenna(antenna) => antenna.starved_samples(),
            ChainInput::Loopback(..) | ChainInput::Scene(_) => 0,
        }
    }

    /// Drops waiting samples.
    pub fn clear(&mut self) {
        self.read = self.written;
    }
}
