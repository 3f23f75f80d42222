//! Removal of the pilot's direct component, and automatic gain.

use super::symbol_block::{BLOCK_SYMBOLS, BlockOrder, SymbolBlock};
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
    /// Mean of the block before.
    seen: f32,
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

    /// Levels one block; without a signal (`held`) the gain stays. The imaginary part, if there is
    /// one, has no pilot and gets the same gain.
    pub fn process(&mut self, block: &mut SymbolBlock, order: BlockOrder) {
        let [mean_weight, power_weight] = if order.held { [0.0; 2] } else { self.weights() };
        let limit = self.limit();
        if self.blocks == 0 {
            self.seen = block.re.iter().sum::<f32>() / BLOCK_SYMBOLS as f32;
        }
        self.mean += mean_weight * (self.seen - self.mean).clamp(-limit, limit);
        let gain = self.gain();
        let [mean, power] = scale(&mut block.re, self.mean, gain, limit);
        self.seen = self.mean + mean;
        self.power += power_weight * (power - self.power);
        if order.whole {
            scale(&mut block.im, 0.0, gain, limit);
        }
        if self.blocks == 0 {
            // The first block has to set its own gain.
            let gain = self.gain() / gain;
            block.re.iter_mut().chain(&mut block.im).for_each(|x| *x *= gain);
        }
        if !order.held {
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
    /// Takes the mean away, limits, multiplies by the gain; gives mean and mean square of what is
    /// there before the gain.
    fn scale(
        x: &mut [f32; BLOCK_SYMBOLS],
        mean: f32,
        gain: f32,
        limit: f32,
    ) -> [f32; 2] = scale_body;
}

#[inline(always)]
fn scale_body<const FMA: bool>(
    x: &mut [f32; BLOCK_SYMBOLS],
    mean: f32,
    gain: f32,
    limit: f32,
) -> [f32; 2] {
    let mut sums = [[0.0; LANES]; 2];
    for x in x.as_chunks_mut::<LANES>().0 {
        for lane in 0..LANES {
            let y = between(x[lane] - mean, limit);
            sums[0][lane] += y;
            sums[1][lane] = madd::<FMA>(y, y, sums[1][lane]);
            x[lane] = y * gain;
        }
    }
    sums.map(|[a, b, c, d, e, f, g, h]| {
        (((a + b) + (c + d)) + ((e + f) + (g + h))) / BLOCK_SYMBOLS as f32
    })
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

    const WHOLE: BlockOrder = BlockOrder { held: false, whole: true };

    #[test]
    fn levels_become_nominal_whatever_the_input() {
        for gain in [1e-4, 1.0, 3e4] {
            let mut level = Level::new();
            let mut block = SymbolBlock::default();
            for n in 0..3000 {
                let data = |k: usize| ((k * 7 + n * 3) % 8) as f32 * 2.0 - 7.0;
                block.re = std::array::from_fn(|k| gain * (data(k) + 1.25));
                block.im = std::array::from_fn(|k| -gain * data(k));
                level.process(&mut block, WHOLE);
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
        (0..400).for_each(|_| level.process(&mut loud.clone(), WHOLE));
        let before = (level.pilot(), level.data_rms());
        let held = BlockOrder { held: true, ..WHOLE };
        (0..400).for_each(|_| level.process(&mut SymbolBlock::default(), held));
        assert_eq!((level.pilot(), level.data_rms()), before);
    }

    #[test]
    fn silence_stays_silent() {
        let mut level = Level::new();
        let mut block = SymbolBlock::default();
        level.process(&mut block, WHOLE);
        assert_eq!([block.re, block.im], [[0.0; BLOCK_SYMBOLS]; 2]);
    }
}
