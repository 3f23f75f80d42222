//! Carrier recovery on the pilot.
//!
//! Close to the pilot the signal is double-sideband, so its data is in phase with the pilot, and
//! the quadrature part of a narrow band around the pilot is the phase error. The narrow band is a
//! triangular mean over two blocks: data away from the pilot has a quadrature part that grows with
//! distance, and a plain mean would let too much of it in.

use millstream_dsp::loop_filter::{LoopFilter, LoopGains};
use millstream_dsp::rotator::{LANES, Rotator, wrap_rad};
use millstream_dsp::{multiversion, simd::madd};

/// Symbols between updates of the loop: an eighth of a segment.
pub const BLOCK_SYMBOLS: usize = 104;

/// Symbols between two updates of the loops.
#[derive(Clone, Copy, Debug)]
pub struct SymbolBlock {
    /// Real parts: in phase with the pilot once the carrier is recovered.
    pub re: [f32; BLOCK_SYMBOLS],
    /// Imaginary parts.
    pub im: [f32; BLOCK_SYMBOLS],
}

impl Default for SymbolBlock {
    fn default() -> Self {
        Self { re: [0.0; BLOCK_SYMBOLS], im: [0.0; BLOCK_SYMBOLS] }
    }
}

/// Loop bandwidth while pulling in, and the number of updates that lasts (about 3 ms).
const ACQUIRE_BANDWIDTH_HZ: f64 = 2000.0;
const ACQUIRE_UPDATES: u32 = 300;

/// Loop bandwidth while tracking.
const TRACK_BANDWIDTH_HZ: f64 = 300.0;

/// How far the loop may pull from where the search found the pilot.
const PULL_LIMIT_HZ: f64 = 3000.0;

/// Weight of a block in the pilot's mean amplitude.
const PILOT_WEIGHT: f32 = 1.0 / 64.0;

/// The phase-locked loop: turns the pilot to zero frequency and phase.
#[derive(Clone, Debug)]
pub struct Carrier {
    /// Pilot phase at the next symbol.
    phase_rad: f64,
    /// Turn of a pilot in its place per nominal symbol interval, and per present one.
    base_rad: f64,
    nominal_rad: f64,
    filter: LoopFilter,
    update_rate_hz: f64,
    updates: u32,
    /// Phase step that the loop asks for, spread over the next block.
    pull_rad: f64,
    /// The last block weighted by a rising ramp: first half of the triangle.
    rising: (f32, f32),
    /// Mean amplitude.
    pilot: f32,
}

impl Carrier {
    /// A loop for a pilot that turns by `nominal_rad` per symbol, at `symbol_rate_hz`.
    #[must_use]
    pub fn new(nominal_rad: f64, symbol_rate_hz: f64) -> Self {
        let update_rate_hz = symbol_rate_hz / BLOCK_SYMBOLS as f64;
        let limit = std::f64::consts::TAU * PULL_LIMIT_HZ / update_rate_hz;
        let gains = LoopGains::new(ACQUIRE_BANDWIDTH_HZ, update_rate_hz);
        Self {
            phase_rad: 0.0,
            base_rad: nominal_rad,
            nominal_rad,
            filter: LoopFilter::new(gains, limit),
            update_rate_hz,
            updates: 0,
            pull_rad: 0.0,
            rising: (0.0, 0.0),
            pilot: 0.0,
        }
    }

    /// Pulls in again with the wide bandwidth, keeping the frequency.
    pub fn reacquire(&mut self) {
        self.updates = 0;
        self.filter.set_gains(LoopGains::new(ACQUIRE_BANDWIDTH_HZ, self.update_rate_hz));
    }

    /// The pilot's turn per symbol.
    #[must_use]
    pub fn turn_rad(&self) -> f64 {
        self.nominal_rad + self.filter.rate() / BLOCK_SYMBOLS as f64
    }

    /// Says that symbols are taken at `interval` nominal intervals from now on.
    pub fn set_interval(&mut self, interval: f64) {
        self.nominal_rad = self.base_rad * interval;
    }

    /// Says that the next symbol is taken `symbols` later than it would have been.
    pub fn skip(&mut self, symbols: f64) {
        self.phase_rad += self.nominal_rad * symbols;
    }

    /// Turns a block of symbols in place by the pilot's phase, and updates the loop; without a
    /// signal to follow (`held`) it only goes on at its frequency.
    /// Returns the mean around the end of the block before, in which the pilot should be real.
    pub fn process(&mut self, block: &mut SymbolBlock, held: bool) -> (f32, f32) {
        let turn = self.nominal_rad + self.pull_rad / BLOCK_SYMBOLS as f64;
        let mut sums = [[0.0; LANES]; 4];
        derotate(Rotator::quick(-self.phase_rad, -turn), block, &mut sums);
        let [re, im, ramp_re, ramp_im] = sums.map(|lanes| lanes.iter().sum::<f32>());
        let all = (re / BLOCK_SYMBOLS as f32, im / BLOCK_SYMBOLS as f32);
        let rising = (ramp_re, ramp_im);
        let mean_re = self.rising.0 + all.0 - rising.0;
        let mean_im = self.rising.1 + all.1 - rising.1;
        self.rising = rising;
        self.phase_rad = wrap_rad(self.phase_rad + turn * BLOCK_SYMBOLS as f64);
        if held {
            self.pull_rad = self.filter.rate();
            return (mean_re, mean_im);
        }
        let error = self.error(mean_re, mean_im);
        self.pull_rad = self.filter.update(error);
        self.updates = self.updates.saturating_add(1);
        if self.updates == ACQUIRE_UPDATES {
            self.filter.set_gains(LoopGains::new(TRACK_BANDWIDTH_HZ, self.update_rate_hz));
        }
        (mean_re, mean_im)
    }

    /// The phase error: exact while pulling in. While tracking it is relative to the pilot's usual
    /// amplitude, so that moments without a pilot do not throw the loop off.
    fn error(&mut self, re: f32, im: f32) -> f64 {
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

/// The ramp across a block, from 0 to 1, over the number of symbols.
static RAMP: [f32; BLOCK_SYMBOLS] = {
    let mut ramp = [0.0; BLOCK_SYMBOLS];
    let mut k = 0;
    while k < BLOCK_SYMBOLS {
        ramp[k] = (k as f32 + 0.5) / (BLOCK_SYMBOLS * BLOCK_SYMBOLS) as f32;
        k += 1;
    }
    ramp
};

multiversion! {
    /// Multiplies a block by the oscillator; adds up both parts, and both weighted by the ramp. To
    /// add up the lanes here would tempt the compiler to work across them.
    fn derotate(
        rotator: Rotator,
        block: &mut SymbolBlock,
        sums: &mut [[f32; LANES]; 4],
    ) = derotate_body;
}

#[inline(always)]
fn derotate_body<const FMA: bool>(
    mut rotator: Rotator,
    SymbolBlock { re, im }: &mut SymbolBlock,
    out: &mut [[f32; LANES]; 4],
) {
    let mut sums = [[0.0; LANES]; 4];
    let rows = re.as_chunks_mut::<LANES>().0.iter_mut().zip(im.as_chunks_mut::<LANES>().0);
    for ((re, im), ramp) in rows.zip(RAMP.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            let (cos, sin) = (rotator.cos[lane], rotator.sin[lane]);
            let turned_re = madd::<FMA>(re[lane], cos, -(im[lane] * sin));
            let turned_im = madd::<FMA>(re[lane], sin, im[lane] * cos);
            (re[lane], im[lane]) = (turned_re, turned_im);
            sums[0][lane] += turned_re;
            sums[1][lane] += turned_im;
            sums[2][lane] = madd::<FMA>(turned_re, ramp[lane], sums[2][lane]);
            sums[3][lane] = madd::<FMA>(turned_im, ramp[lane], sums[3][lane]);
        }
        rotator.advance();
    }
    *out = sums;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_to_a_pilot_that_is_off_by_hundreds_of_hertz() {
        let symbol_rate_hz = 10.76e6;
        let nominal = -std::f64::consts::FRAC_PI_2;
        for offset_hz in [-800.0, 0.0, 150.0] {
            let mut carrier = Carrier::new(nominal, symbol_rate_hz);
            let turn = nominal + std::f64::consts::TAU * offset_hz / symbol_rate_hz;
            let mut last = (0.0, 0.0);
            for block in 0..1500 {
                let phase = |k: usize| 2.0 + turn * (block * BLOCK_SYMBOLS + k) as f64;
                let re = std::array::from_fn(|k| phase(k).cos() as f32);
                let im = std::array::from_fn(|k| phase(k).sin() as f32);
                last = carrier.process(&mut SymbolBlock { re, im }, false);
            }
            assert!((last.0 - 1.0).abs() < 1e-3 && last.1.abs() < 1e-3, "{offset_hz}: {last:?}");
            let error_hz = (carrier.turn_rad() - turn) / std::f64::consts::TAU * symbol_rate_hz;
            assert!(error_hz.abs() < 1.0, "{error_hz}");
        }
    }

    #[test]
    fn the_count_of_updates_ends_without_overflow() {
        // It takes twelve hours to get there.
        let mut carrier = Carrier::new(-1.0, 10.76e6);
        carrier.updates = u32::MAX;
        let block = SymbolBlock { re: [1.0; BLOCK_SYMBOLS], ..SymbolBlock::default() };
        carrier.process(&mut block.clone(), false);
        assert_eq!(carrier.updates, u32::MAX);
    }

    #[test]
    fn a_held_loop_goes_on_at_its_frequency() {
        let mut carrier = Carrier::new(-1.0, 10.76e6);
        let turn = -1.0 + 2e-5;
        let block = |n: usize| {
            let phase = |k: usize| turn * (n * BLOCK_SYMBOLS + k) as f64;
            let re = std::array::from_fn(|k| phase(k).cos() as f32);
            SymbolBlock { re, im: std::array::from_fn(|k| phase(k).sin() as f32) }
        };
        for n in 0..2000 {
            carrier.process(&mut block(n), false);
        }
        let before = carrier.turn_rad();
        // Noise or silence in between does not count.
        for _ in 0..500 {
            carrier.process(&mut SymbolBlock { re: [0.0; 104], im: [3.0; 104] }, true);
        }
        assert_eq!(carrier.turn_rad(), before);
        carrier.process(&mut block(2500), true);
        let (re, im) = carrier.process(&mut block(2501), true);
        assert!(re > 0.99 && im.abs() < 0.02, "{re} {im}");
    }
}
