//! The advised size of a converter's blocks, by what a block was measured to cost.

use super::number;
use crate::samples;
use crate::table::Table;
use millstream_lab::irq::block_size::{self, BlockSize, SampleBlockCost};
use millstream_measure::Measured;
use millstream_measure::picture::short_time;
use millstream_stats::Histogram;

/// The quantile of the way that counts.
const QUANTILE: f64 = 0.99;
/// Rows around the advised one.
const BESIDE: usize = 2;

crate::results! {
    /// The sizes of blocks for one series of measurements.
    pub struct BlockAdvice {
        /// The measured series: one or two interrupts a block.
        series: String,
        /// Samples per second.
        rate_hz: f64,
        /// The largest share of a CPU that the blocks may take.
        cpu_share_max: f64,
        /// The advised size.
        advised: Option<BlockSize>,
        /// All sizes.
        sizes: Vec<BlockSize>,
    }
}

/// Returns the advice for each series.
pub fn of(records: &[Measured], rate_hz: f64, share_max: f64) -> Vec<BlockAdvice> {
    let each = samples::series(records).into_iter().map(|(series, all)| {
        let mut ways = Histogram::default();
        all.iter().for_each(|record| ways.merge(&record.observed.histogram));
        let cpu_ns = all.iter().map(|record| number(record, "cpu_ns_per_block")).sum::<f64>();
        let cost = SampleBlockCost {
            cpu_ns: cpu_ns / all.len() as f64,
            way_ns: ways.quantile_ns(QUANTILE) as f64,
        };
        let (sizes, best) = block_size::sizes(cost, rate_hz, share_max);
        BlockAdvice {
            series: series.to_owned(),
            rate_hz,
            cpu_share_max: share_max,
            advised: best.map(|best| sizes[best]),
            sizes,
        }
    });
    each.collect()
}

impl BlockAdvice {
    /// The advised size, with its neighbours.
    pub fn words(&self) -> String {
        let (rate, share) = (self.rate_hz / 1e6, self.cpu_share_max * 100.0);
        let Some(advised) = self.advised else {
            return format!(
                "\n{} at {rate} MS/s: no block of up to 1048576 samples takes at most {share:.1} % \
                 of a CPU and is read before the next one is full\n",
                self.series
            );
        };
        let at = self.sizes.iter().position(|size| *size == advised).unwrap_or(0);
        let rows = self.sizes.iter().skip(at.saturating_sub(BESIDE)).take(2 * BESIDE + 1);
        let time = |s: f64| short_time((s * 1e9) as u64);
        let table = Table::of(rows)
            .right("samples a block", |size| size.samples.to_string())
            .right("full after", |size| time(size.fill_s))
            .right("first sample to read, p99", |size| time(size.latency_s))
            .right("CPU", |size| format!("{:.2} %", size.cpu_share * 100.0))
            .left("", |size| if *size == advised { "<- advised" } else { "" });
        format!(
            "\n{} at {rate} MS/s: {} samples are the smallest power of two whose blocks take at \
             most {share:.1} % of a CPU and are read before the next one is full. The cost of a \
             block was measured with 64 samples, and counts for all lengths\n{}",
            self.series,
            advised.samples,
            table.text()
        )
    }
}
