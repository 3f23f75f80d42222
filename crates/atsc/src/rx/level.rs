//! Removal of the pilot's direct component, and automatic gain.

use crate::params::DATA_POWER;
use millstream_dsp::sampler::{Levelling, Means};

/// Blocks during which the averages follow quickly, while the carrier loop pulls in.
const ACQUIRE_BLOCKS: u32 = 150;

/// Weight of a block in the averages during acquisition.
const ACQUIRE_WEIGHT: f32 = 1.0 / 16.0;

/// Blocks that the averages span while tracking: the direct component's error is then about
/// 0.01 symbol levels, the gain's about 0.2 %.
const MEAN_BLOCKS: u32 = 256;
pub(super) const POWER_BLOCKS: u32 = 1024;

/// The largest distance of symbols from their mean while tracking, over their root mean square
/// (data reaches 1.5, and echoes and noise little more): an impulse must not distort later symbols.
const LIMIT: f32 = 5.0;

/// The least input power of a signal: it bounds the gain on silence.
const LEAST_POWER: f32 = 1e-24;

/// Brings symbols to their nominal levels: mean zero, mean square 21.
#[derive(Clone, Debug, Default)]
pub struct Level {
    mean: f32,
    power: f32,
    /// Mean of the previous block.
    seen: f32,
    blocks: u32,
}

impl Level {
    /// Creates a control in its initial state.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Restarts the fast averages.
    pub fn reacquire(&mut self) {
        self.blocks = self.blocks.min(1);
    }

    /// Computes a block with `make`, which applies the level; without a signal (`held`) the gain
    /// stays. Returns the applied levelling. The first block is computed more than once.
    pub fn process(&mut self, held: bool, make: &mut dyn FnMut(Levelling) -> Means) -> Levelling {
        // Silence does not count as the beginning of the signal.
        let held = held || self.blocks == 0 && !self.begin(make);
        let [mean_weight, power_weight] = if held { [0.0; 2] } else { self.weights() };
        let limit = self.limit();
        self.mean += mean_weight * (self.seen - self.mean).clamp(-limit, limit);
        let levelling = Levelling { offset: self.mean, limit, gain: self.gain() };
        let Means { plain, square } = make(levelling);
        self.seen = self.mean + plain;
        self.power += power_weight * (square - self.power);
        if !held {
            self.blocks = self.blocks.saturating_add(1);
        }
        levelling
    }

    /// Sets mean and gain from the first block; returns false if it is silent.
    fn begin(&mut self, make: &mut dyn FnMut(Levelling) -> Means) -> bool {
        self.mean = make(Levelling::default()).plain;
        let Means { plain, square } = make(Levelling { offset: self.mean, ..Levelling::default() });
        self.seen = self.mean + plain;
        self.power = square;
        square > 0.0
    }

    fn gain(&self) -> f32 {
        (DATA_POWER / self.power.max(LEAST_POWER)).sqrt()
    }

    /// Returns the largest distance from the mean that counts.
    fn limit(&self) -> f32 {
        let tracking = self.blocks >= ACQUIRE_BLOCKS;
        if tracking { LIMIT * self.power.max(LEAST_POWER).sqrt() } else { f32::MAX }
    }

    /// Returns the weights of a block: the whole value first, then fast averages, then ever longer
    /// ones.
    fn weights(&self) -> [f32; 2] {
        match self.blocks {
            0 => [1.0; 2],
            n if n < ACQUIRE_BLOCKS => [ACQUIRE_WEIGHT; 2],
            n => {
                let span = n - ACQUIRE_BLOCKS + 16;
                [MEAN_BLOCKS, POWER_BLOCKS].map(|most| 1.0 / span.min(most) as f32)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Levels these numbers; returns the result.
    fn process(level: &mut Level, held: bool, block: &[f32]) -> Vec<f32> {
        let mut out = Vec::new();
        level.process(held, &mut |levelling| {
            let placed: Vec<f32> = block.iter().map(|x| levelling.place(*x)).collect();
            let mean = |x: &dyn Fn(f32) -> f32| {
                placed.iter().map(|y| x(*y)).sum::<f32>() / block.len() as f32
            };
            out = placed.iter().map(|y| y * levelling.gain).collect();
            Means { plain: mean(&|y| y), square: mean(&|y| y * y) }
        });
        out
    }

    #[test]
    fn levels_become_nominal_whatever_the_input() {
        for gain in [1e-4, 1.0, 3e4] {
            let mut level = Level::new();
            let mut out = Vec::new();
            for n in 0..3000 {
                let data = |k: usize| ((k * 7 + n * 3) % 8) as f32 * 2.0 - 7.0;
                let block: [f32; 104] = std::array::from_fn(|k| gain * (data(k) + 1.25));
                out = process(&mut level, false, &block);
                let loudest = out.iter().fold(0.0, |a: f32, x| a.max(x.abs()));
                assert!((4.0..12.0).contains(&loudest), "gain {gain}, block {n}: {loudest}");
            }
            for x in out {
                let nearest = ((x + 7.0) / 2.0).round() * 2.0 - 7.0;
                assert!((x - nearest).abs() < 0.05, "gain {gain}: {x}");
            }
        }
    }

    #[test]
    fn the_gain_stays_while_there_is_no_signal() {
        let mut level = Level::new();
        (0..400).for_each(|_| drop(process(&mut level, false, &[3.0, 1.0])));
        let before = (level.mean, level.power);
        (0..400).for_each(|_| drop(process(&mut level, true, &[0.0; 104])));
        assert_eq!((level.mean, level.power), before);
    }

    #[test]
    fn silence_stays_silent() {
        for held in [true, false] {
            assert_eq!(process(&mut Level::new(), held, &[0.0; 104]), [0.0; 104]);
        }
    }

    #[test]
    fn silence_before_the_signal_leaves_no_trace() {
        let signal: [f32; 104] = std::array::from_fn(|k| (k % 8) as f32 - 2.0);
        let run = |silent: usize| -> Vec<Vec<f32>> {
            let mut level = Level::new();
            (0..silent).for_each(|_| drop(process(&mut level, false, &[0.0; 104])));
            (0..400).map(|_| process(&mut level, false, &signal)).collect()
        };
        assert!(run(40) == run(0));
    }
}
