//! Carrier recovery on the pilot.
//!
//! Close to the pilot the signal is double-sideband, so its data is in phase with the pilot, and
//! the quadrature part of a narrow band around the pilot is the phase error. The narrow band is a
//! triangular mean over two blocks: data away from the pilot has a quadrature part that grows with
//! distance, and a plain mean would pass too much of it. The loop works on samples, which are fewer
//! than symbols, before the matched filter: the sender's filter has half the slope of both filters
//! together.

use crate::Sample;
use millstream_dsp::loop_filter::{LoopFilter, LoopGains};
use millstream_dsp::rotation::{Rotation, wrap_rad};
use millstream_dsp::sampler::IntSample;
use millstream_dsp::trim::Trim;
use std::f64::consts::TAU;

/// The time between updates of the loop, and the number of samples that a block is a multiple of.
pub(super) const BLOCK_S: f64 = 40e-6;
const BLOCK_UNIT: usize = 16;

/// Loop bandwidth during pull-in, and the number of updates that pull-in takes (about 3 ms).
const ACQUIRE_BANDWIDTH_HZ: f64 = 2000.0;
pub(super) const ACQUIRE_UPDATES: u32 = 75;

/// Loop bandwidth while tracking.
pub(super) const TRACK_BANDWIDTH_HZ: f64 = 300.0;

/// The largest distance of the loop from the pilot frequency that the search found.
const PULL_LIMIT_HZ: f64 = 3000.0;

/// Weight of a block in the pilot's mean amplitude.
const PILOT_WEIGHT: f32 = 1.0 / 16.0;

/// The phase-locked loop: rotates the pilot to zero frequency and phase.
#[derive(Clone, Debug)]
pub struct CarrierLoop {
    /// Pilot phase at the next sample.
    phase_rad: f64,
    /// Phase step per sample of a pilot at the frequency that the search found.
    nominal_rad: f64,
    filter: LoopFilter,
    update_rate_hz: f64,
    updates: u32,
    /// Phase correction by the loop, spread over a block.
    pull_rad: f64,
    /// The ramp across a block, from 0 to 1, over the number of samples.
    ramp: Vec<f32>,
    /// Samples of the block so far, their mean, and their mean weighted by the ramp.
    filled: usize,
    mean: Sample,
    rising: Sample,
    /// The last block weighted by a rising ramp: first half of the triangle.
    before: Sample,
    /// Mean amplitude.
    pilot: f32,
}

/// The scaling and correction of samples before the rotation.
#[derive(Clone, Copy, Debug)]
pub struct SampleScaling {
    /// The correction of offset and imbalance.
    pub trim: Trim,
    /// The integer value of 1.0.
    pub one: f32,
    /// Whether there is no signal to follow: the loop then keeps its frequency.
    pub held: bool,
}

/// Counts and power of some samples.
#[derive(Clone, Copy, Debug, Default)]
pub struct CarrierObservation {
    /// Samples that were not numbers.
    pub bad: usize,
    /// The sum of their squared magnitudes.
    pub power: f32,
}

impl CarrierLoop {
    /// Creates a loop for a pilot that rotates by `nominal_rad` per sample.
    #[must_use]
    pub fn new(nominal_rad: f64, sample_rate_hz: f64) -> Self {
        let units = (BLOCK_S * sample_rate_hz / BLOCK_UNIT as f64).round().max(1.0) as usize;
        let len = units * BLOCK_UNIT;
        let update_rate_hz = sample_rate_hz / len as f64;
        let limit = TAU * PULL_LIMIT_HZ / update_rate_hz;
        let gains = LoopGains::new(ACQUIRE_BANDWIDTH_HZ, update_rate_hz);
        Self {
            phase_rad: 0.0,
            nominal_rad,
            filter: LoopFilter::new(gains, limit),
            update_rate_hz,
            updates: 0,
            pull_rad: 0.0,
            ramp: (0..len).map(|k| (k as f32 + 0.5) / (len * len) as f32).collect(),
            filled: 0,
            mean: Sample::ZERO,
            rising: Sample::ZERO,
            before: Sample::ZERO,
            pilot: 0.0,
        }
    }

    /// Restarts the pull-in with the wide bandwidth, and keeps the frequency.
    pub fn reacquire(&mut self) {
        self.updates = 0;
        self.filter.set_gains(LoopGains::new(ACQUIRE_BANDWIDTH_HZ, self.update_rate_hz));
    }

    /// Returns the pilot's frequency relative to the one that the search found.
    #[must_use]
    pub fn offset_hz(&self) -> f64 {
        self.filter.rate() / TAU * self.update_rate_hz
    }

    /// Rotates samples so that the pilot is at zero frequency, into as many pairs; updates the loop
    /// after every block.
    pub fn rotate(
        &mut self,
        samples: &[Sample],
        packing: SampleScaling,
        out: &mut [IntSample],
    ) -> CarrierObservation {
        let mut seen = CarrierObservation::default();
        let (mut samples, mut out) = (samples, out);
        while !samples.is_empty() {
            let len = self.ramp.len();
            let count = (len - self.filled).min(samples.len());
            let (now, later) = samples.split_at(count);
            let (out_now, out_later) = out.split_at_mut(count);
            (samples, out) = (later, out_later);
            let rate_rad = self.nominal_rad + self.pull_rad / len as f64;
            let sums = Rotation {
                phase_rad: -self.phase_rad,
                rate_rad: -rate_rad,
                trim: packing.trim,
                one: packing.one,
                weights: &self.ramp[self.filled..],
            }
            .run(now, out_now);
            seen.bad += sums.bad;
            seen.power += sums.power;
            self.phase_rad = wrap_rad(self.phase_rad + rate_rad * count as f64);
            self.mean += sums.plain / len as f32;
            self.rising += sums.weighted;
            self.filled += count;
            if self.filled == len {
                self.update(packing.held);
            }
        }
        seen
    }

    /// Updates the loop by a full block.
    fn update(&mut self, held: bool) {
        let mean = self.before + self.mean - self.rising;
        (self.before, self.rising, self.mean) = (self.rising, Sample::ZERO, Sample::ZERO);
        self.filled = 0;
        if held {
            self.pull_rad = self.filter.rate();
            return;
        }
        let error = self.error(mean);
        self.pull_rad = self.filter.update(error);
        self.updates = self.updates.saturating_add(1);
        if self.updates == ACQUIRE_UPDATES {
            self.filter.set_gains(LoopGains::new(TRACK_BANDWIDTH_HZ, self.update_rate_hz));
        }
    }

    /// Returns the phase error, which is exact during pull-in. During tracking it is relative to
    /// the pilot's mean amplitude, so that moments without a pilot do not disturb the loop.
    fn error(&mut self, Sample { re, im }: Sample) -> f64 {
        let amplitude = (re * re + im * im).sqrt();
        if self.updates == 0 {
            self.pilot = amplitude;
        }
        self.pilot += PILOT_WEIGHT * (amplitude - self.pilot);
        if self.updates < ACQUIRE_UPDATES {
            return f64::from(im).atan2(f64::from(re));
        }
        let share = |x: f32| f64::from(x / self.pilot.max(f32::MIN_POSITIVE)).clamp(-1.0, 1.0);
        if re < 0.0 { share(amplitude.copysign(im)) } else { share(im) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE_HZ: f64 = 6.25e6;
    const NOMINAL: f64 = -2.7;
    const PACKING: SampleScaling = SampleScaling {
        trim: Trim { offset: Sample::ZERO, gain: 1.0, cross: 0.0 },
        one: 1000.0,
        held: false,
    };

    fn tone(turn: f64, n: usize) -> Sample {
        let phase = (2.0 + turn * n as f64) % TAU;
        Sample::new(phase.cos() as f32, phase.sin() as f32)
    }

    /// Returns the last pair of chunks of a tone.
    fn run(carrier: &mut CarrierLoop, turn: f64, chunks: std::ops::Range<usize>) -> IntSample {
        let mut out = [[0; 2]; 2000];
        for chunk in chunks {
            let samples: [Sample; 2000] = std::array::from_fn(|k| tone(turn, chunk * 2000 + k));
            carrier.rotate(&samples, PACKING, &mut out);
        }
        out[1999]
    }

    #[test]
    fn locks_to_a_pilot_that_is_off_by_hundreds_of_hertz() {
        for offset_hz in [-800.0, 0.0, 150.0] {
            let mut carrier = CarrierLoop::new(NOMINAL, RATE_HZ);
            let last = run(&mut carrier, NOMINAL + TAU * offset_hz / RATE_HZ, 0..50);
            assert!((last[0] - 1000).abs() < 3 && last[1].abs() < 3, "{offset_hz}: {last:?}");
            let found = carrier.offset_hz();
            assert!((found - offset_hz).abs() < 1.0, "{offset_hz}: {found}");
        }
    }

    #[test]
    fn chunks_of_any_size_turn_alike() {
        let turn = NOMINAL + TAU * 300.0 / RATE_HZ;
        let samples: Vec<Sample> = (0..40_000).map(|n| tone(turn, n)).collect();
        let turned = |size: usize| -> Vec<IntSample> {
            let mut carrier = CarrierLoop::new(NOMINAL, RATE_HZ);
            let mut out = vec![[0; 2]; samples.len()];
            for (samples, out) in samples.chunks(size).zip(out.chunks_mut(size)) {
                carrier.rotate(samples, PACKING, out);
            }
            out
        };
        let (a, b) = (turned(2048), turned(333));
        let parts = a.as_flattened().iter().zip(b.as_flattened());
        assert!(parts.map(|(a, b)| (a - b).abs()).max().unwrap() <= 1);
    }

    #[test]
    fn the_count_of_updates_ends_without_overflow() {
        // Reaching it takes twelve hours.
        let mut carrier = CarrierLoop::new(-1.0, RATE_HZ);
        carrier.updates = u32::MAX;
        carrier.rotate(&[Sample::ONE; 2000], PACKING, &mut [[0; 2]; 2000]);
        assert_eq!(carrier.updates, u32::MAX);
    }

    #[test]
    fn a_held_loop_goes_on_at_its_frequency() {
        let mut carrier = CarrierLoop::new(NOMINAL, RATE_HZ);
        let turn = NOMINAL + 2e-5;
        run(&mut carrier, turn, 0..100);
        let before = carrier.offset_hz();
        // Noise or silence in between does not count.
        let held = SampleScaling { held: true, ..PACKING };
        for _ in 100..120 {
            carrier.rotate(&[Sample::new(0.0, 3.0); 2000], held, &mut [[0; 2]; 2000]);
        }
        assert_eq!(carrier.offset_hz(), before);
        let [re, im] = run(&mut carrier, turn, 120..121);
        assert!(re > 990 && im.abs() < 20, "{re} {im}");
    }
}
