//! Filters with a finite impulse response, at the input's rate or below.

use crate::common::resampled_ns;
use crate::fft_filter::filter_kernel;
use crate::taps::{TapParameters, from_message};
use crate::{Made, Sample};
use millstream_accel::{Domain, OffloadParameters};
use millstream_dsp::fir::{self, Filtered};
use millstream_dsp::resample::{Resampler, Signal};
use millstream_flow::copied_ns;
use millstream_flow::registry::{BlockParameters, wrong};
use millstream_flow::{Block, BlockMemory, Each, MemorySpan, OneToOne, Process, Through};
use millstream_flow::{BlockError, BlockFacts, Item, ItemRatio, ParameterKind, ParameterValue};

/// Computes `y[m] = Σₖ taps[k] · x[m - k]`; items before the first are zero. The delay of a
/// symmetric filter is (taps - 1) / 2 items.
///
/// # Messages
/// `taps`: real taps, valid from the next item on. The history stays, as far as the filter before
/// had it. A filter with another domain than `cpu` does not take it where there is a device.
#[derive(Debug)]
pub struct Fir<T> {
    kernel: fir::Fir<T>,
    taps: TapFacts,
}

/// A [`Fir`] that keeps one of several results, or has complex taps: `y[m] = Σₖ taps[k] ·
/// x[m · decimation - k]`.
///
/// # Messages
/// `taps`: as of [`Fir`]. The items that come out stay the same ones.
#[derive(Debug)]
pub struct DecimatingFir<T> {
    kernel: Resampler<T>,
    decimation: u32,
    taps: TapFacts,
}

/// What follows from taps.
#[derive(Clone, Copy, Debug)]
struct TapFacts {
    count: usize,
    delay: f64,
}

impl TapFacts {
    fn of(taps: &[f32]) -> Self {
        Self { count: taps.len(), delay: fir::group_delay(taps.iter().map(|tap| tap * tap)) }
    }

    fn state(self, facts: &mut BlockFacts, decimation: u32) {
        facts
            .delay(self.delay)
            .holds(self.count as u64 / 2 + u64::from(decimation) - 1)
            .memory(BlockMemory::none().with("taps", MemorySpan::Items(self.count as u64)))
            .message("taps", ParameterKind::Numbers, "real taps from the next item on");
    }
}

impl<T: Filtered> Fir<T> {
    /// Creates a filter with real taps.
    ///
    /// # Panics
    /// Without taps.
    #[must_use]
    pub fn new(taps: &[f32]) -> Self {
        assert!(!taps.is_empty(), "a filter has taps");
        Self { kernel: fir::Fir::new(taps), taps: TapFacts::of(taps) }
    }
}

impl<T: Signal> DecimatingFir<T> {
    /// Creates a filter with real taps that keeps one of `decimation` results.
    ///
    /// # Panics
    /// Without taps, or if `decimation` is zero.
    #[must_use]
    pub fn new(taps: &[f32], decimation: u32) -> Self {
        assert!(!taps.is_empty() && decimation > 0, "a filter has taps and gives something");
        let kernel = Resampler::new(taps, 1, decimation as usize);
        Self { kernel, decimation, taps: TapFacts::of(taps) }
    }
}

impl DecimatingFir<Sample> {
    /// Creates a filter with complex taps.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    #[must_use]
    pub fn with_complex_taps(taps: &[Sample], decimation: u32) -> Self {
        let kernel = Resampler::with_complex_taps(taps, 1, decimation as usize);
        let delay = fir::group_delay(taps.iter().map(Sample::norm_sqr));
        Self { kernel, decimation, taps: TapFacts { count: taps.len(), delay } }
    }
}

impl<T: Filtered + Item> OneToOne for Fir<T> {
    type Input = T;
    type Output = T;

    fn run(&mut self, input: &[T], output: &mut [T]) {
        self.kernel.process(input, output);
    }

    fn facts(&self, facts: &mut BlockFacts) {
        self.taps.state(facts, 1);
        // Neighbouring outputs share the loads of their inputs.
        facts.ns_per_item(0.0045 * (self.taps.count * size_of::<T>()) as f64 + copied_ns::<T>());
    }

    fn message(&mut self, _: &str, value: &ParameterValue) -> Result<(), BlockError> {
        let taps = from_message(value)?;
        self.kernel.set_taps(&taps);
        self.taps = TapFacts::of(&taps);
        Ok(())
    }
}

impl<T: Signal + Item> Process for DecimatingFir<T> {
    type Input = T;
    type Output = T;

    fn process(&mut self, input: &[T], output: &mut [T]) -> (usize, usize) {
        self.kernel.process(input, output)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        let rate = ItemRatio::decimate(self.decimation);
        self.taps.state(facts, self.decimation);
        facts.rate(rate).ns_per_item(resampled_ns::<T>(self.taps.count as f64, rate));
    }

    fn message(&mut self, _: &str, value: &ParameterValue) -> Result<(), BlockError> {
        let taps = from_message(value)?;
        self.kernel.set_taps(&taps);
        self.taps = TapFacts::of(&taps);
        Ok(())
    }
}

/// Makes a filter with real taps.
fn real<T: Signal + Filtered + Item>(taps: &[f32], decimation: u32) -> Box<dyn Block> {
    match decimation {
        1 => Box::new(Each::new(Fir::<T>::new(taps))),
        _ => Box::new(Through::new(DecimatingFir::<T>::new(taps, decimation))),
    }
}

/// FIR filter with given or calculated taps; decimates.
#[derive(BlockParameters)]
#[block(
    fir,
    pure,
    example = "design = \"low_pass\"\nrate_hz = 1e6\ncutoff_hz = 100e3\ntransition_hz = 20e3\n\
               decimation = 4"
)]
struct FirParameters {
    /// type of the items
    item: FilteredItem,
    /// number of input items for one output item
    #[parameter(default = 1, least = 1)]
    decimation: u32,
    #[parameter(flatten)]
    taps: TapParameters,
    #[parameter(flatten)]
    offload: OffloadParameters,
}

#[derive(BlockParameters, Clone, Copy)]
enum FilteredItem {
    Cf32,
    F32,
}

impl FirParameters {
    fn make(self) -> Made {
        let plain = self.make_on_cpu()?;
        match (self.offload.domain, self.item) {
            (Domain::Cpu, _) | (Domain::Auto, FilteredItem::F32) => Ok(plain),
            (Domain::Gpu, FilteredItem::F32) => {
                Err(wrong("domain", "gpu", "\"cpu\" or \"auto\" for real items"))
            }
            (_, FilteredItem::Cf32) => {
                let kernel = filter_kernel(&self.taps, self.decimation as usize)?;
                self.offload.make::<Sample>(kernel, |_| plain)
            }
        }
    }

    fn make_on_cpu(&self) -> Made {
        let (taps, im) = (self.taps.real()?, self.taps.imaginary()?);
        Ok(match (self.item, im) {
            (FilteredItem::Cf32, Some(im)) => {
                let taps: Vec<Sample> =
                    taps.iter().zip(im).map(|(re, im)| Sample::new(*re, im)).collect();
                Box::new(Through::new(DecimatingFir::with_complex_taps(&taps, self.decimation)))
            }
            (FilteredItem::Cf32, None) => real::<Sample>(&taps, self.decimation),
            (FilteredItem::F32, Some(_)) => {
                return Err("taps_im: real items have real taps; use item = \"cf32\"".into());
            }
            (FilteredItem::F32, None) => real::<f32>(&taps, self.decimation),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    fn run(values: &str, input: &[Sample]) -> Vec<Sample> {
        let mut mock = Mock::new(crate::registry().make("fir", values).unwrap());
        mock.feed("in", input);
        mock.run().unwrap();
        mock.take("out")
    }

    #[test]
    fn the_time_follows_taps_with_another_delay() {
        use millstream_flow::{TagTime, TagValue, keys};
        let mut mock = Mock::new(Each::new(Fir::<f32>::new(&[0.0, 0.0, 1.0, 0.0, 0.0])));
        mock.tag("in", 0, keys::RX_RATE_HZ, 1e6);
        mock.tag("in", 0, keys::RX_TIME, TagTime::from_ticks(1000, 1e6));
        for taps in [vec![0.0; 0], vec![1.0, 0.0, 0.0], vec![0.0, 2.0, 0.0], vec![1.0]] {
            if !taps.is_empty() {
                mock.send("taps", millstream_flow::ParameterValue::Numbers(taps)).unwrap();
            }
            mock.feed("in", &[1.0f32; 50]);
            mock.run().unwrap();
        }
        let times = mock.take_tags("out").into_iter().filter_map(|tag| match tag.value {
            TagValue::Time(time) if tag.key == keys::RX_TIME => Some((tag.offset, time)),
            _ => None,
        });
        let times: Vec<_> = times.map(|(at, time)| (at, time.to_ticks(1e6).unwrap())).collect();
        // Item n was received at 1000 + n, and comes as late as the taps say.
        assert_eq!(times, [(0, 998), (50, 1050), (100, 1099), (150, 1150)]);
    }

    #[test]
    fn an_impulse_shows_the_taps() {
        let mut impulse = vec![Sample::default(); 8];
        impulse[1] = Sample::new(0.0, 2.0);
        let j = |x: f32| Sample::new(0.0, x);
        let out = run("taps = [1, -0.5, 0.25]", &impulse);
        assert_eq!(out[..5], [j(0.0), j(2.0), j(-1.0), j(0.5), j(0.0)]);
        let out = run("taps = [1, 2, 3]\ndecimation = 2", &impulse);
        assert_eq!(out, [j(0.0), j(4.0), j(0.0), j(0.0)]);
        let out = run("taps = [0, 1]\ntaps_im = [1, 0]\ngain = 3", &impulse);
        assert_eq!(out[1..3], [Sample::new(-6.0, 0.0), j(6.0)]);
    }

    #[test]
    fn a_designed_filter_passes_its_band() {
        let tone = |hz: f64| -> Vec<Sample> {
            let angle = |n| (std::f64::consts::TAU * hz * f64::from(n) / 1e6) as f32;
            (0..4000).map(|n| Sample::from_polar(1.0, angle(n))).collect()
        };
        let values = "design = \"low_pass\"\nrate_hz = 1e6\ncutoff_hz = 100e3\n\
                      transition_hz = 20e3\ndecimation = 4";
        assert!((run(values, &tone(50e3)).last().unwrap().norm() - 1.0).abs() < 0.01);
        assert!(run(values, &tone(150e3)).last().unwrap().norm() < 0.01);
    }

    #[test]
    fn new_taps_hold_from_the_next_item_on() {
        let mut mock = Mock::new(Each::new(Fir::<f32>::new(&[1.0])));
        mock.feed("in", &[1.0f32]);
        mock.run().unwrap();
        mock.block.message("taps", &ParameterValue::from(&[0.0, 5.0][..])).unwrap();
        mock.feed("in", &[2.0f32, 3.0]);
        mock.run().unwrap();
        assert_eq!(mock.take::<f32>("out"), [1.0, 0.0, 10.0]);
        assert!(mock.block.message("taps", &ParameterValue::from(&[][..])).is_err());
    }

    #[test]
    fn filters_that_cannot_be_say_what_is_missing() {
        let refused = |values: &str| match crate::registry().make("fir", values) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{values} is accepted"),
        };
        assert!(refused("").contains("taps = `[]`: expected taps of the filter, or another"));
        assert!(refused("taps = [1]\nitem = \"f32\"\ntaps_im = [1]").contains("real items"));
        assert!(refused("taps = [1]\ntaps_im = [1, 2]").contains("expected as many as in taps"));
        assert!(
            refused("design = \"low_pass\"").contains("cutoff_hz is 0 Hz: give a value between")
        );
        assert!(refused("design = \"lowpass\"").contains("did you mean `low_pass`?"));
        assert!(refused("taps = [1]\ndecimation = 0").contains("1 to 4294967295"));
    }
}
