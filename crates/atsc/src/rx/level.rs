//! Removal of the pilot's direct component, and automatic gain.

use super::carrier::{BLOCK_SYMBOLS, SymbolBlock};
use crate::params::DATA_POWER;
use millstream_dsp::rotator::LANES;
use millstream_dsp::{multiversion, simd::madd};

/// Blocks during which the averages follow quickly, while the carrier loop pulls in.
const ACQUIRE_BLOCKS: u32 = 300;

/// Weight of a block in the averages during acquisition.
const ACQUIRE_WEIGHT: f32 = 1.0 / 32.0;

/// Blocks that the averages span while tracking: the direct component's error is then about
/// 0.01 symbol levels, the gain's about 0.2 %.
const MEAN_BLOCKS: u32 = 512;
const POWER_BLOCKS: u32 = 2048;

/// How far symbols may lie from their mean while tracking, over their root mean square (data
/// reaches 1.5, and echoes and noise little more): an impulse must not spoil what comes after it.
const LIMIT: f32 = 5.0;

/// Least input power taken for a signal: bounds the gain on silence.
const LEAST_POWER: f32 = 1e-24;

/// Brings symbols to their nominal levels: mean zero, mean square 21.
#[derive(Clone, Debug, Default)]
pub struct Level {
    mean: f32,
    power: f32,
    blocks: u32,
}

impl Level {
    /// Before the first block.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Follows quickly again.
    pub fn reacquire(&mut self) {
        self.blocks = self.blocks.min(1);
    }

    /// Mean of the input: the pilot.
    #[must_use]
    pub fn pilot(&self) -> f32 {
        self.mean
    }

    /// Root mean square of the input without the pilot.
    #[must_use]
    pub fn data_rms(&self) -> f32 {
        self.power.sqrt()
    }

    /// Levels one block, whose real mean the carrier recovery has measured; without a signal
    /// (`held`) the gain stays. The imaginary part has no pilot and gets the same gain.
    pub fn process(&mut self, block: &mut SymbolBlock, block_mean: f32, held: bool) {
        let [mean_weight, power_weight] = if held { [0.0; 2] } else { self.weights() };
        let limit = self.limit();
        self.mean += mean_weight * (block_mean - self.mean).clamp(-limit, limit);
        let gain = self.gain();
        let power = scale(block, self.mean, gain, limit);
        self.power += power_weight * (power - self.power);
        if self.blocks == 0 {
            // The first block has to set its own gain.
            let gain = self.gain() / gain;
            block.re.iter_mut().chain(&mut block.im).for_each(|x| *x *= gain);
        }
        if !held {
            self.blocks = self.blocks.saturating_add(1);
        }
    }

    fn gain(&self) -> f32 {
        (DATA_POWER / self.power.max(LEAST_POWER)).sqrt()
    }

    /// The largest distance from the mean that counts.
    fn limit(&self) -> f32 {
        let tracking = self.blocks >= ACQUIRE_BLOCKS;
        if tracking { LIMIT * self.power.max(LEAST_POWER).sqrt() } else { f32::MAX }
    }

    /// First a plain start, then quick averages, then ever longer ones.
    fn weights(&self) -> [f32; 2] {
        match self.blocks {
            0 => [1.0; 2],
            n if n < ACQUIRE_BLOCKS => [ACQUIRE_WEIGHT; 2],
            n => {
                let span = n - ACQUIRE_BLOCKS + 32;
                [MEAN_BLOCKS, POWER_BLOCKS].map(|most| 1.0 / span.min(most) as f32)
            }
        }
    }
}

multiversion! {
    /// Takes the mean away, limits, multiplies by the gain; gives the real part's mean square
    /// before the gain.
    fn scale(block: &mut SymbolBlock, mean: f32, gain: f32, limit: f32) -> f32 = scale_body;
}

#[inline(always)]
fn scale_body<const FMA: bool>(
    SymbolBlock { re, im }: &mut SymbolBlock,
    mean: f32,
    gain: f32,
    limit: f32,
) -> f32 {
    let mut sums = [0.0; LANES];
    for (re, im) in re.as_chunks_mut::<LANES>().0.iter_mut().zip(im.as_chunks_mut::<LANES>().0) {
        for lane in 0..LANES {
            let x = between(re[lane] - mean, limit);
            sums[lane] = madd::<FMA>(x, x, sums[lane]);
            re[lane] = x * gain;
            im[lane] = between(im[lane], limit) * gain;
        }
    }
    // In order: sums across lanes would tempt the compiler to work across them above.
    sums.iter().sum::<f32>() / BLOCK_SYMBOLS as f32
}

/// `x` cut to `limit` on both sides, as two instructions do it.
#[inline(always)]
fn between(x: f32, limit: f32) -> f32 {
    let x = if x > -limit { x } else { -limit };
    if x < limit { x } else { limit }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_become_nominal_whatever_the_input() {
        for gain in [1e-4, 1.0, 3e4] {
            let mut level = Level::new();
            let mut block = SymbolBlock::default();
            for n in 0..3000 {
                let data = |k: usize| ((k * 7 + n * 3) % 8) as f32 * 2.0 - 7.0;
                block.re = std::array::from_fn(|k| gain * (data(k) + 1.25));
                block.im = std::array::from_fn(|k| -gain * data(k));
                let mean = block.re.iter().sum::<f32>() / BLOCK_SYMBOLS as f32;
                level.process(&mut block, mean, false);
                let loudest = block.re.iter().fold(0.0, |a: f32, x| a.max(x.abs()));
                assert!((4.0..12.0).contains(&loudest), "gain {gain}, block {n}: {loudest}");
            }
            for (x, y) in block.re.into_iter().zip(block.im) {
                let nearest = ((x + 7.0) / 2.0).round() * 2.0 - 7.0;
                assert!((x - nearest).abs() < 0.05 && (x + y).abs() < 0.1, "gain {gain}: {x} {y}");
            }
        }
    }

    #[test]
    fn the_gain_stays_while_there_is_no_signal() {
        let mut level = Level::new();
        let loud = SymbolBlock { re: [3.0; BLOCK_SYMBOLS], im: [1.0; BLOCK_SYMBOLS] };
        (0..400).for_each(|_| level.process(&mut loud.clone(), 0.5, false));
        let before = (level.pilot(), level.data_rms());
        (0..400).for_each(|_| level.process(&mut SymbolBlock::default(), 0.0, true));
        assert_eq!((level.pilot(), level.data_rms()), before);
    }

    #[test]
    fn silence_stays_silent() {
        let mut level = Level::new();
        let mut block = SymbolBlock::default();
        level.process(&mut block, 0.0, false);
        assert_eq!([block.re, block.im], [[0.0; BLOCK_SYMBOLS]; 2]);
    }
}
