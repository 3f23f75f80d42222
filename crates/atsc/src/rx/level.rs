//! Removal of the pilot's direct component, and automatic gain.

use super::carrier::{BLOCK_SYMBOLS, SymbolBlock};
use crate::params::DATA_POWER;

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

    /// Levels one block, whose real mean the carrier recovery has measured. The imaginary part has
    /// no pilot and gets the same gain.
    pub fn process(&mut self, block: &mut SymbolBlock, block_mean: f32) {
        let [mean_weight, power_weight] = self.weights();
        let limit = self.limit();
        self.mean += mean_weight * (block_mean - self.mean).clamp(-limit, limit);
        let mean = self.mean;
        let mut sums = [0.0; 8];
        for eight in block.re.as_chunks_mut::<8>().0 {
            for (x, sum) in eight.iter_mut().zip(&mut sums) {
                *x = (*x - mean).clamp(-limit, limit);
                *sum += *x * *x;
            }
        }
        let power = sums.iter().sum::<f32>() / BLOCK_SYMBOLS as f32;
        self.power += power_weight * (power - self.power);
        let gain = (DATA_POWER / self.power.max(LEAST_POWER)).sqrt();
        block.re.iter_mut().for_each(|x| *x *= gain);
        block.im.iter_mut().for_each(|x| *x = gain * x.clamp(-limit, limit));
        self.blocks = self.blocks.saturating_add(1);
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
                level.process(&mut block, mean);
            }
            for (x, y) in block.re.into_iter().zip(block.im) {
                let nearest = ((x + 7.0) / 2.0).round() * 2.0 - 7.0;
                assert!((x - nearest).abs() < 0.05 && (x + y).abs() < 0.1, "gain {gain}: {x} {y}");
            }
        }
    }

    #[test]
    fn silence_stays_silent() {
        let mut level = Level::new();
        let mut block = SymbolBlock::default();
        level.process(&mut block, 0.0);
        assert_eq!([block.re, block.im], [[0.0; BLOCK_SYMBOLS]; 2]);
    }
}
