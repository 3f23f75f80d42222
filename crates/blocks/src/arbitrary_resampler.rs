//! Resampling by any ratio.

use crate::Sample;
use crate::common::number;
use millstream_dsp::arbitrary::{ArbitraryResampler, RATIOS};
use millstream_flow::registry::BlockParameters;
use millstream_flow::{BlockError, BlockFacts, Item, ItemRatio, ParameterKind, ParameterValue};
use millstream_flow::{Process, Through};
use std::marker::PhantomData;

/// The items of the resampler.
pub trait Resampled: Item {
    /// Rows of one stream of these items.
    const ROWS: usize;
    /// Runs the kernel.
    fn run(kernel: &mut ArbitraryResampler, input: &[Self], out: &mut [Self]) -> (usize, usize);
}

impl Resampled for f32 {
    const ROWS: usize = 1;
    fn run(kernel: &mut ArbitraryResampler, input: &[Self], out: &mut [Self]) -> (usize, usize) {
        kernel.process_real(input, out)
    }
}

impl Resampled for Sample {
    const ROWS: usize = 2;
    fn run(kernel: &mut ArbitraryResampler, input: &[Self], out: &mut [Self]) -> (usize, usize) {
        kernel.process(input, out)
    }
}

/// Makes `ratio` items out of one, with a bank of 128 filter phases and linear interpolation
/// between them. Frequencies beyond 0.9 of half the lower rate are suppressed by 80 dB; the delay
/// is 16 items of the lower rate.
///
/// # Messages
/// `ratio`: small changes follow a clock without a jump. The initial filter stays.
#[derive(Debug)]
pub struct Arbitrary<T> {
    kernel: ArbitraryResampler,
    /// The ratio of its filter, and that of now.
    first: f64,
    ratio: f64,
    items: PhantomData<T>,
}

impl<T: Resampled> Arbitrary<T> {
    /// Creates a resampler.
    ///
    /// # Errors
    /// A ratio outside 1/256 to 256.
    pub fn new(ratio: f64) -> Result<Self, BlockError> {
        check(ratio)?;
        let kernel = ArbitraryResampler::new(ratio, T::ROWS);
        Ok(Self { kernel, first: ratio, ratio, items: PhantomData })
    }
}

fn check(ratio: f64) -> Result<(), BlockError> {
    if RATIOS.contains(&ratio) {
        return Ok(());
    }
    Err(format!("ratio = {ratio}: expected a number from 1/256 to 256").into())
}

impl<T: Resampled> Process for Arbitrary<T> {
    type Input = T;
    type Output = T;

    fn process(&mut self, input: &[T], output: &mut [T]) -> (usize, usize) {
        T::run(&mut self.kernel, input, output)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts
            .rate(nearest(self.ratio))
            .delay(self.kernel.delay() as f64)
            .holds(self.kernel.delay() as u64)
            .ns_per_item(20.0)
            .message("ratio", ParameterKind::Number, "items out for one in");
    }

    fn message(&mut self, _: &str, value: &ParameterValue) -> Result<(), BlockError> {
        let ratio = number(value)?;
        check(ratio)?;
        // The filter belongs to the first ratio; lower ratios would alias.
        let start = self.first;
        if ratio < 0.95 * start || ratio > 1.05 * start {
            return Err(format!(
                "ratio = {ratio}: a running block can change it only within 5 % of {start}"
            )
            .into());
        }
        self.kernel.set_ratio(ratio);
        self.ratio = ratio;
        Ok(())
    }
}

/// Returns the fraction nearest to `ratio` with terms of at most 2²⁴ (Euclid's continued fraction).
fn nearest(ratio: f64) -> ItemRatio {
    const TERM_MAX: f64 = 16_777_216.0;
    let (mut a, mut b) = ((0.0, 1.0), (1.0, 0.0));
    let mut rest = ratio;
    for _ in 0..32 {
        let whole = rest.floor();
        let next = (whole * b.0 + a.0, whole * b.1 + a.1);
        if next.0 > TERM_MAX || next.1 > TERM_MAX {
            break;
        }
        (a, b) = (b, next);
        if rest - whole < 1e-12 {
            break;
        }
        rest = 1.0 / (rest - whole);
    }
    ItemRatio::new((b.0 as u32).max(1), (b.1 as u32).max(1))
}

/// Resamples by any ratio, also an irrational one.
#[derive(BlockParameters)]
#[block(arbitrary_resampler, pure, items(cf32, f32), example = "ratio = 1.0884")]
struct ArbitraryParameters {
    /// output rate / input rate, 1/256 to 256
    ratio: f64,
}

impl ArbitraryParameters {
    fn make<T: Resampled>(self) -> Result<Through<Arbitrary<T>>, BlockError> {
        Ok(Through::new(Arbitrary::new(self.ratio)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    #[test]
    fn the_rate_is_the_nearest_fraction() {
        assert_eq!(nearest(1.5), ItemRatio::new(3, 2));
        assert_eq!(nearest(1.0 / 3.0), ItemRatio::new(1, 3));
        assert_eq!(nearest(160.0 / 147.0), ItemRatio::new(160, 147));
        assert!((nearest(std::f64::consts::PI).ratio() - std::f64::consts::PI).abs() < 1e-10);
    }

    #[test]
    fn a_new_ratio_holds_from_the_next_item_on() {
        let mut mock = Mock::new(Through::new(Arbitrary::<f32>::new(2.0).unwrap()));
        mock.feed("in", &[1.0f32; 10_000]);
        mock.run().unwrap();
        assert_eq!(mock.take::<f32>("out").len(), 20_000);
        mock.block.process.message("ratio", &ParameterValue::Number(1.92)).unwrap();
        mock.feed("in", &[1.0f32; 10_000]);
        mock.run().unwrap();
        assert!((19_199..=19_201).contains(&mock.take::<f32>("out").len()));
        let error = mock.block.process.message("ratio", &ParameterValue::Number(1.0)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "ratio = 1: a running block can change it only within 5 % of 2"
        );
    }

    #[test]
    fn tags_follow_a_new_ratio() {
        use millstream_flow::{TagTime, TagValue, keys};
        let mut mock = Mock::new(Through::new(Arbitrary::<f32>::new(2.0).unwrap()));
        mock.tag("in", 0, keys::RX_RATE_HZ, 1e6);
        mock.feed("in", &[1.0f32; 10_000]);
        mock.run().unwrap();
        let before = mock.take::<f32>("out").len() as u64;
        mock.send("ratio", 1.92).unwrap();
        mock.feed("in", &[1.0f32; 10_000]);
        mock.run().unwrap();
        mock.tag("in", 20_000, keys::RX_TIME, TagTime::from_ticks(20_000, 1e6));
        mock.feed("in", &[1.0f32; 10_000]);
        mock.run().unwrap();
        let tags = mock.take_tags("out");
        let delay = BlockFacts::of(&mock.block).delay;
        assert_eq!(tags[0].value, TagValue::Number(2e6));
        // From the message on the items have another rate; those of the input come later.
        assert_eq!((tags[1].key, tags[1].value), (keys::RX_RATE_HZ, TagValue::Number(1.92e6)));
        assert_eq!(tags[1].offset, before);
        let timed = tags[1].offset as f64 + (10_000.0 + delay) * 1.92;
        assert!((tags[2].offset as f64 - timed).abs() < 2.0, "{:?}", tags[2]);
        let TagValue::Time(time) = tags[2].value else { panic!("{:?}", tags[2]) };
        assert!(time.to_ticks(1e6).unwrap().abs_diff(20_000) <= 1);
    }
}
