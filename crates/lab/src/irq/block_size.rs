//! The size of a converter's blocks, by the measured cost of a block: a short block comes early and
//! costs CPU time, a long one waits until it is full.

use serde::Serialize;

/// The sizes to compare: powers of two.
const LOG_SIZES: std::ops::RangeInclusive<u32> = 4..=20;

/// The measured way of a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleBlockCost {
    /// CPU time of driver and user for a block, nanoseconds.
    pub cpu_ns: f64,
    /// From the edge to the read, nanoseconds: a high quantile.
    pub way_ns: f64,
}

/// A size of blocks at a sample rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BlockSize {
    /// Samples in a block.
    pub samples: u64,
    /// Time to fill it, seconds.
    pub fill_s: f64,
    /// From its first sample to the read, seconds.
    pub latency_s: f64,
    /// The share of a CPU that the blocks take.
    pub cpu_share: f64,
}

/// Returns the sizes at `rate_hz`, ascending, and the position of the smallest one whose blocks
/// take at most `share_max` of a CPU and are read before the next one is full; `None` if no size is
/// large enough.
#[must_use]
pub fn sizes(
    cost: SampleBlockCost,
    rate_hz: f64,
    share_max: f64,
) -> (Vec<BlockSize>, Option<usize>) {
    let sizes: Vec<BlockSize> = LOG_SIZES
        .map(|log| {
            let samples = 1u64 << log;
            let fill_s = samples as f64 / rate_hz;
            BlockSize {
                samples,
                fill_s,
                latency_s: fill_s + cost.way_ns / 1e9,
                cpu_share: cost.cpu_ns / 1e9 / fill_s,
            }
        })
        .collect();
    let fits = |size: &BlockSize| size.cpu_share <= share_max && size.fill_s * 1e9 >= cost.way_ns;
    let best = sizes.iter().position(fits);
    (sizes, best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_block_within_the_share_is_advised() {
        // 5 µs of CPU a block: 10 % of a CPU at 20 000 blocks a second, so 50 samples at 1 MS/s.
        let cost = SampleBlockCost { cpu_ns: 5_000.0, way_ns: 20_000.0 };
        let (all, best) = sizes(cost, 1e6, 0.1);
        let advised = all[best.unwrap()];
        assert_eq!(advised.samples, 64);
        assert!((advised.cpu_share - 0.078).abs() < 0.001, "{advised:?}");
        assert!((advised.latency_s - 84e-6).abs() < 1e-9, "{advised:?}");
        assert!(all.is_sorted_by_key(|size| size.samples) && all[0].samples == 16);
    }

    #[test]
    fn a_block_is_read_before_the_next_one_is_full() {
        let slow = SampleBlockCost { cpu_ns: 10.0, way_ns: 300_000.0 };
        let (all, best) = sizes(slow, 1e6, 0.1);
        assert_eq!(all[best.unwrap()].samples, 512);
        let (_, none) = sizes(SampleBlockCost { cpu_ns: 1e9, way_ns: 1.0 }, 1e9, 0.1);
        assert_eq!(none, None);
    }
}
