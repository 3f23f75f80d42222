//! Resampling by a fraction.

use crate::common::resampled_ns;
use millstream_dsp::design::{Band, TAPS_MAX, design};
use millstream_dsp::fir::group_delay;
use millstream_dsp::resample::{Resampler, Signal};
use millstream_dsp::window::Window;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{BlockError, BlockFacts, Item, ItemRatio};
use millstream_flow::{Process, Through};

/// Makes `interpolation` items out of `decimation`, with one filter at `interpolation` times the
/// input rate. Items before the first are zero; the delay is (taps - 1) / 2 items of that higher
/// rate.
#[derive(Debug)]
pub struct Rational<T> {
    kernel: Resampler<T>,
    rate: ItemRatio,
    taps: usize,
    delay: f64,
}

impl<T: Signal> Rational<T> {
    /// Creates a resampler with these taps at `interpolation` times the input rate. Their sum is
    /// the gain times `interpolation`.
    ///
    /// # Panics
    /// Without taps.
    #[must_use]
    pub fn new(taps: &[f32], rate: ItemRatio) -> Self {
        let (up, down) = (rate.interpolation() as usize, rate.decimation() as usize);
        let delay = group_delay(taps.iter().map(|tap| tap * tap)) / up as f64;
        Self { kernel: Resampler::new(taps, up, down), rate, taps: taps.len(), delay }
    }
}

impl<T: Signal + Item> Process for Rational<T> {
    type Input = T;
    type Output = T;

    fn process(&mut self, input: &[T], output: &mut [T]) -> (usize, usize) {
        self.kernel.process(input, output)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        let (up, down) = (self.rate.interpolation(), self.rate.decimation());
        let taps_for_one = self.taps as f64 / f64::from(self.rate.interpolation());
        facts
            .rate(self.rate)
            .delay(self.delay)
            .holds(self.taps as u64 / (2 * u64::from(up)) + u64::from(down.div_ceil(up)))
            .ns_per_item(resampled_ns::<T>(taps_for_one, self.rate));
    }
}

/// Returns taps for a change of rate: frequencies below `pass` of half the lower rate pass,
/// frequencies above that half are 80 dB down (Kaiser).
///
/// # Errors
/// A filter that would be too long.
pub fn taps_for(rate: ItemRatio, pass: f64) -> Result<Vec<f32>, BlockError> {
    let up = f64::from(rate.interpolation());
    // In units of the input rate; the filter runs at `up`.
    let edge = 0.5 * rate.ratio().min(1.0);
    let band = Band::Low { cutoff_hz: edge * (1.0 + pass) / 2.0 };
    let taps = design(band, up, up, edge * (1.0 - pass), Window::Kaiser(7.857))?;
    Ok(taps.iter().map(|tap| *tap as f32).collect())
}

/// Resamples by the ratio of two whole numbers.
#[derive(BlockParameters)]
#[block(rational_resampler, pure, items(cf32, f32), example = "interpolation = 3\ndecimation = 2")]
struct RationalParameters {
    /// items out
    #[parameter(least = 1, most = TAPS_MAX)]
    interpolation: u32,
    /// items in, for so many items out
    #[parameter(least = 1)]
    decimation: u32,
    /// width of the passband, divided by half the lower rate
    #[parameter(default = 0.8, above = 0, below = 1)]
    pass: f64,
    /// own taps, at `interpolation` times the input rate
    taps: Option<Vec<f32>>,
}

impl RationalParameters {
    fn make<T: Signal + Item>(self) -> Result<Through<Rational<T>>, BlockError> {
        let rate = ItemRatio::new(self.interpolation, self.decimation);
        let taps = self.taps.map_or_else(|| taps_for(rate, self.pass), Ok)?;
        Ok(Through::new(Rational::new(&taps, rate)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;
    use std::f64::consts::TAU;

    #[test]
    fn a_tone_keeps_its_frequency_and_comes_out_late() {
        for (up, down) in [(3, 2), (2, 3), (48, 250), (1, 10), (160, 147)] {
            let rate = ItemRatio::new(up, down);
            let taps = taps_for(rate, 0.8).unwrap();
            let delay = (taps.len() - 1) as f64 / 2.0 / f64::from(rate.interpolation());
            let frequency = 0.5 * 0.75 * rate.ratio().min(1.0);
            let tone = |n: f64| (TAU * (frequency * n).rem_euclid(1.0)).sin();
            let mut mock = Mock::new(Through::new(Rational::<f32>::new(&taps, rate)));
            mock.feed("in", &(0..20_000).map(|n| tone(f64::from(n)) as f32).collect::<Vec<_>>());
            mock.run().unwrap();
            let out = mock.take::<f32>("out");
            assert_eq!(out.len(), (20_000.0 * rate.ratio()).ceil() as usize, "{rate}");
            for (m, y) in out.iter().enumerate().skip((2.0 * delay * rate.ratio()) as usize + 1) {
                let exact = tone(m as f64 / rate.ratio() - delay);
                assert!((f64::from(*y) - exact).abs() < 1e-3, "{rate} {m}: {y} {exact}");
            }
        }
    }
}
