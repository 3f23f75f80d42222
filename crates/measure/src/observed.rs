//! Latencies in the order of time: their distribution, the time of each new maximum, and the
//! largest of each block, from which the tail is estimated ([`crate::extreme`]).

use serde::{Deserialize, Serialize};

use millstream_stats::Histogram;

/// The capacity for maxima; of independent values the expected number is the logarithm of their
/// count.
const MAXIMA_ROOM: usize = 1024;
/// The capacity for blocks; when it is full, neighbours are joined.
const BLOCKS: usize = 512;

/// A value that was larger than all before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewMaximum {
    /// The time, nanoseconds from the beginning.
    pub at_ns: u64,
    /// The value, nanoseconds.
    pub value_ns: u64,
}

/// The largest value of each of up to 512 blocks of equal size. The size doubles when they are
/// full, so that any number of values fits and nothing is allocated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockMaxima {
    /// Values in a block.
    pub values_per_block: u64,
    /// The largest of each complete block, in the order of time, nanoseconds.
    pub maxima_ns: Vec<u64>,
    #[serde(skip)]
    filling: (u64, u64),
}

impl Default for BlockMaxima {
    fn default() -> Self {
        let maxima_ns = Vec::with_capacity(BLOCKS);
        Self { values_per_block: 1, maxima_ns, filling: (0, 0) }
    }
}

impl BlockMaxima {
    /// Joins the blocks of several samples at the size of the largest, or larger, so that there are
    /// at most 512.
    #[must_use]
    pub fn joined(all: &[&Self]) -> Self {
        let mut joined = Self::default();
        let largest = all.iter().map(|blocks| blocks.values_per_block).max();
        joined.values_per_block = largest.unwrap_or(1);
        loop {
            joined.maxima_ns.clear();
            for blocks in all {
                // Sizes are powers of two; an incomplete block is left out.
                let several = (joined.values_per_block / blocks.values_per_block.max(1)) as usize;
                let whole = blocks.maxima_ns.chunks_exact(several.max(1));
                joined.maxima_ns.extend(whole.filter_map(|chunk| chunk.iter().max()));
            }
            if joined.maxima_ns.len() <= BLOCKS {
                return joined;
            }
            joined.values_per_block *= 2;
        }
    }

    /// Returns how many of these joined blocks each of the samples gave.
    #[must_use]
    pub fn shares_of(&self, all: &[&Self]) -> Vec<usize> {
        let several = |one: &&Self| self.values_per_block / one.values_per_block.max(1);
        all.iter().map(|one| one.maxima_ns.len() / several(one).max(1) as usize).collect()
    }

    fn record(&mut self, value_ns: u64) {
        let (count, largest) = self.filling;
        self.filling = (count + 1, largest.max(value_ns));
        if self.filling.0 < self.values_per_block {
            return;
        }
        self.maxima_ns.push(self.filling.1);
        self.filling = (0, 0);
        if self.maxima_ns.len() == BLOCKS {
            for pair in 0..BLOCKS / 2 {
                let [a, b] = [self.maxima_ns[2 * pair], self.maxima_ns[2 * pair + 1]];
                self.maxima_ns[pair] = a.max(b);
            }
            self.maxima_ns.truncate(BLOCKS / 2);
            self.values_per_block *= 2;
        }
    }
}

/// The stored data of a stream of latencies. Recording allocates no memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// The number of occurrences of each latency.
    pub histogram: Histogram,
    /// Each value that was larger than all before it.
    #[serde(default)]
    pub new_maxima: Vec<NewMaximum>,
    /// The largest of each block.
    #[serde(default)]
    pub blocks: BlockMaxima,
}

impl Default for Observed {
    fn default() -> Self {
        let new_maxima = Vec::with_capacity(MAXIMA_ROOM);
        Self { histogram: Histogram::default(), new_maxima, blocks: BlockMaxima::default() }
    }
}

impl Observed {
    /// Records a latency that was measured `at_ns` after the beginning.
    pub fn record(&mut self, value_ns: u64, at_ns: u64) {
        if self.histogram.count() == 0 || value_ns > self.histogram.max_ns() {
            if self.new_maxima.len() == MAXIMA_ROOM {
                self.new_maxima.pop();
            }
            self.new_maxima.push(NewMaximum { at_ns, value_ns });
        }
        self.blocks.record(value_ns);
        self.histogram.record(value_ns);
    }
}

/// Makes a distribution without an order of time.
impl From<Histogram> for Observed {
    fn from(histogram: Histogram) -> Self {
        Self { histogram, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_new_maximum_has_its_time() {
        let mut observed = Observed::default();
        for (at_ns, value_ns) in [0, 7, 3, 7, 9, 1].into_iter().enumerate() {
            observed.record(value_ns, at_ns as u64);
        }
        let seen: Vec<_> =
            observed.new_maxima.iter().map(|max| (max.at_ns, max.value_ns)).collect();
        assert_eq!(seen, [(0, 0), (1, 7), (4, 9)]);
        let text = serde_json::to_string(&observed).unwrap();
        assert_eq!(serde_json::from_str::<Observed>(&text).unwrap(), observed);
    }

    #[test]
    fn a_maximum_that_creeps_for_ever_takes_no_more_room() {
        let mut observed = Observed::default();
        (0..5000).for_each(|n| observed.record(n, n));
        assert_eq!(observed.new_maxima.len(), MAXIMA_ROOM);
        assert_eq!(observed.new_maxima.last().unwrap().value_ns, 4999, "the last is the largest");
    }

    #[test]
    fn blocks_of_several_samples_have_one_size() {
        let sample = |count: u64| {
            let mut blocks = BlockMaxima::default();
            (0..count).for_each(|n| blocks.record(n));
            blocks
        };
        let (short, long) = (sample(100), sample(1500));
        let joined = BlockMaxima::joined(&[&short, &long]);
        assert_eq!(joined.values_per_block, long.values_per_block);
        let of_short = 100 / long.values_per_block as usize;
        assert_eq!(joined.maxima_ns.len(), of_short + long.maxima_ns.len());
        assert_eq!(joined.shares_of(&[&short, &long]), [of_short, long.maxima_ns.len()]);
        assert_eq!(joined.maxima_ns[0], long.values_per_block - 1);
        assert!(BlockMaxima::joined(&[&long; 9]).maxima_ns.len() <= BLOCKS);
        assert_eq!(BlockMaxima::joined(&[]), BlockMaxima::default());
    }

    #[test]
    fn blocks_double_instead_of_growing_and_lose_no_maximum() {
        let mut blocks = BlockMaxima::default();
        // The largest value of every 1000.
        let value = |n: u64| if n % 1000 == 999 { 1_000_000 + n } else { n % 7 };
        (0..1_000_000).for_each(|n| blocks.record(value(n)));
        assert!((BLOCKS / 2..BLOCKS).contains(&blocks.maxima_ns.len()));
        let per_block = blocks.values_per_block;
        assert!(per_block.is_power_of_two() && per_block > 1000);
        for (block, found) in blocks.maxima_ns.iter().enumerate() {
            let first = block as u64 * per_block;
            let expected = (first..first + per_block).map(value).max().unwrap();
            assert_eq!(*found, expected, "block {block}");
        }
    }
}
