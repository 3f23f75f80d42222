//! Symbol timing recovery on the segment sync.
//!
//! Within the four sync symbols the neighbours are known, so their mean slopes against timing are
//! known, and with correct timing the unknown data around them has no influence: the detector's
//! self-noise vanishes at its zero.

use crate::Sample;
use crate::params::{SEGMENT_SYMBOLS, SYMBOL_RATE_HZ, SYNC_SYMBOLS};
use crate::segment::WholeSegment;
use millstream_dsp::loop_filter::{LoopFilter, LoopGains};

/// Segments per second: the update rate of the loop.
const UPDATE_RATE_HZ: f64 = SYMBOL_RATE_HZ / SEGMENT_SYMBOLS as f64;

/// Loop bandwidths, each with the number of segments from which it applies.
pub(super) const GEARS: [(u32, f64); 4] = [(0, 400.0), (60, 150.0), (300, 50.0), (1200, 15.0)];

/// The largest clock error that the loop follows: 150 ppm, in symbols per segment.
const RATE_LIMIT: f64 = 150e-6 * SEGMENT_SYMBOLS as f64;

/// Bound of the error of a single segment, symbols.
const ERROR_LIMIT: f64 = 0.4;

/// `d y_k / d tau` of the four sync symbols for a band-limited pulse, whose slope `n` symbols from
/// its middle is `(-1)^n / n`, divided so that the detector has unit slope.
const SLOPES: [f64; SYNC_SYMBOLS] = {
    let [near, far] = [2.5, 1.0 / 6.0];
    let power = 5.0 * 2.0 * (near * near + far * far);
    [-far / power, -near / power, near / power, far / power]
};

/// The timing loop.
#[derive(Clone, Debug)]
pub struct Timing {
    filter: LoopFilter,
    updates: u32,
}

/// A correction of the demodulator's timing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimingChange {
    /// Additional delay of the samples, symbols.
    pub shift: f64,
    /// Relative increase of the symbol interval.
    pub rate: f64,
}

impl Timing {
    /// Creates a loop with its widest bandwidth; `rate` is the relative increase of the symbol
    /// interval that the search found.
    #[must_use]
    pub fn new(rate: f64) -> Self {
        let gains = LoopGains::new(GEARS[0].1, UPDATE_RATE_HZ);
        let mut filter = LoopFilter::new(gains, RATE_LIMIT);
        filter.set_rate(rate * SEGMENT_SYMBOLS as f64);
        Self { filter, updates: 0 }
    }

    /// Returns how late the symbols of a segment were taken, by its sync in the phase `reference`
    /// (of magnitude 1).
    #[must_use]
    pub fn detect(whole: &WholeSegment, reference: Sample) -> f64 {
        let in_phase = |(x, y): (&f32, &f32)| f64::from(x * reference.re + y * reference.im);
        let symbols = whole.segment.symbols.iter().zip(&whole.quadrature).map(in_phase);
        let late: f64 = SLOPES.iter().zip(symbols).map(|(slope, y)| slope * y).sum();
        late.clamp(-ERROR_LIMIT, ERROR_LIMIT)
    }

    /// Updates the loop by one segment.
    pub fn update(&mut self, whole: &WholeSegment, reference: Sample) -> TimingChange {
        let advance = self.filter.update(-Self::detect(whole, reference));
        self.updates = self.updates.saturating_add(1);
        if let Some((_, bandwidth_hz)) = GEARS.iter().find(|(from, _)| *from == self.updates) {
            self.filter.set_gains(LoopGains::new(*bandwidth_hz, UPDATE_RATE_HZ));
        }
        // The integral branch sets the symbol interval; only the rest is a step.
        TimingChange { shift: advance - self.filter.rate(), rate: self.rate() }
    }

    /// Returns the relative increase of the symbol interval.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.filter.rate() / SEGMENT_SYMBOLS as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::SEGMENT_SYNC;
    use bytemuck::Zeroable;

    const REFERENCE: Sample = Sample::new(0.6, -0.8);

    /// Returns a segment of random data taken `late` symbols late, by sinc interpolation.
    fn segment(late: f64, seed: usize) -> WholeSegment {
        let level = |n: isize| {
            let hash = (n + 5000 * seed as isize) as u64;
            let hash = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let sync = SEGMENT_SYNC.get(n as usize).copied();
            f64::from(sync.unwrap_or((hash >> 61) as f32 * 2.0 - 7.0))
        };
        let mut whole = WholeSegment::zeroed();
        for k in 0..SYNC_SYMBOLS {
            let sum: f64 = (-60..60)
                .map(|m| {
                    let t = std::f64::consts::PI * (k as f64 + late - m as f64);
                    level(m) * if t.abs() < 1e-9 { 1.0 } else { t.sin() / t }
                })
                .sum();
            whole.segment.symbols[k] = sum as f32 * REFERENCE.re;
            whole.quadrature[k] = sum as f32 * REFERENCE.im;
        }
        whole
    }

    #[test]
    fn the_detector_has_unit_slope_and_no_noise_at_its_zero() {
        let detect = |late, seed| Timing::detect(&segment(late, seed), REFERENCE);
        assert!(detect(0.0, 1).abs() < 1e-6);
        for late in [-0.1, 0.05, 0.2] {
            let mean = (0..400).map(|seed| detect(late, seed)).sum::<f64>() / 400.0;
            assert!((mean - late).abs() < 0.15 * late.abs() + 0.01, "{late}: {mean}");
        }
    }

    #[test]
    fn the_loop_settles_from_a_tenth_of_a_symbol_and_ten_ppm() {
        let mut timing = Timing::new(0.0);
        let clock = 10e-6;
        let mut late = 0.1;
        for n in 0..3000 {
            let TimingChange { shift, rate } = timing.update(&segment(late, n), REFERENCE);
            late += shift + (rate - clock) * SEGMENT_SYMBOLS as f64;
        }
        assert!(late.abs() < 0.005, "{late}");
        assert!((timing.rate() - clock).abs() < 0.5e-6, "{}", timing.rate());
    }
}
