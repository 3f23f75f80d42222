//! Choices of a test: from a seed, or from the bytes of a fuzzer.

use millstream_link::fault::Select;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A source of choices.
pub enum Draw<'a> {
    Seed(SplitMix64),
    /// The bytes that are left; behind their end every choice is the first one.
    Bytes(&'a [u8]),
}

impl<'a> Draw<'a> {
    pub fn new(seed: u64) -> Self {
        Self::Seed(SplitMix64::seed_from_u64(seed))
    }

    /// Returns a number of `from..to`.
    pub fn range(&mut self, from: u64, to: u64) -> u64 {
        let width = to - from;
        let number = match self {
            Self::Seed(random) => random.next_u64(),
            Self::Bytes(bytes) => {
                let count = if width <= 1 << 8 { 1 } else { 4 };
                let (now, later) = bytes.split_at(bytes.len().min(count));
                *bytes = later;
                now.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
            }
        };
        from + number % width
    }

    /// Returns a seed for another source.
    pub fn seed(&mut self) -> u64 {
        match self {
            Self::Seed(random) => random.next_u64(),
            Self::Bytes(_) => self.range(0, 1 << 32),
        }
    }

    /// Returns true once in `count` times; without any bytes left, never.
    pub fn one_in(&mut self, count: u64) -> bool {
        self.range(0, count) == count - 1
    }

    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.range(0, choices.len() as u64) as usize]
    }

    /// Returns a number from a half to all of `most`, evenly in its logarithm below that.
    pub fn chance(&mut self, most: f64) -> f64 {
        most * 0.5f64.powf(self.range(0, 500) as f64 / 100.0)
    }

    pub fn select(&mut self, most: f64) -> Select {
        let (probability, seed) = (self.chance(most), self.seed());
        Select { probability, seed, ..Select::default() }
    }
}
