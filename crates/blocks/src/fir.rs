//! Filters with a finite impulse response, at the input's rate or below.

use crate::common::resampled_ns;
use crate::fft_filter::filter_kernel;
use crate::taps::{declare, from_message, imaginary_taps, real_taps};
use crate::{ITEM, Made, Sample};
use millstream_dsp::fir::{self, Filtered};
use millstream_dsp::resample::{Resampler, Signal};
use millstream_flow::copied_ns;
use millstream_flow::registry::{BlockType, Parameters};
use millstream_flow::{
    BlockError, Item, ItemRatio, MessageSpec, ParameterKind, ParameterValue, Registry,
};
use millstream_flow::{BlockMemory, MemorySpan, Process, Through};

/// Computes `y[m] = Σₖ taps[k] · x[m · decimation - k]`; items before the first are zero. The delay
/// of a symmetric filter is (taps - 1) / 2 items of the input.
///
/// # Messages
/// `taps`: real taps, valid from the next item on. The items that come out stay the same ones, and
/// the history stays, as far as the filter before had it. A filter with another domain than `cpu`
/// does not take it where there is a device.
#[derive(Debug)]
pub struct Fir<T> {
    kernel: Kernel<T>,
    decimation: u32,
    taps: usize,
    delay: f64,
}

/// The implementation of the filter.
#[derive(Debug)]
enum Kernel<T> {
    /// Every output, by real taps.
    Every(fir::Fir<T>),
    /// Some outputs, or by complex taps.
    Some(Resampler<T>),
}

impl<T: Signal + Filtered> Fir<T> {
    /// Creates a filter with real taps that keeps one of `decimation` results.
    ///
    /// # Panics
    /// Without taps, or if `decimation` is zero.
    #[must_use]
    pub fn new(taps: &[f32], decimation: u32) -> Self {
        assert!(!taps.is_empty() && decimation > 0, "a filter has taps and gives something");
        let kernel = match decimation {
            1 => Kernel::Every(fir::Fir::new(taps)),
            _ => Kernel::Some(Resampler::new(taps, 1, decimation as usize)),
        };
        Self { kernel, decimation, taps: taps.len(), delay: delay_of(taps) }
    }
}

fn delay_of(taps: &[f32]) -> f64 {
    fir::group_delay(taps.iter().map(|tap| tap * tap))
}

impl Fir<Sample> {
    /// Creates a filter with complex taps.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    #[must_use]
    pub fn with_complex_taps(taps: &[Sample], decimation: u32) -> Self {
        let kernel = Kernel::Some(Resampler::with_complex_taps(taps, 1, decimation as usize));
        let delay = fir::group_delay(taps.iter().map(Sample::norm_sqr));
        Self { kernel, decimation, taps: taps.len(), delay }
    }
}

impl<T: Signal + Filtered + Item> Process for Fir<T> {
    type Input = T;
    type Output = T;

    fn process(&mut self, input: &[T], output: &mut [T]) -> (usize, usize) {
        match &mut self.kernel {
            Kernel::Every(kernel) => {
                let items = input.len().min(output.len());
                kernel.process(&input[..items], &mut output[..items]);
                (items, items)
            }
            Kernel::Some(kernel) => kernel.process(input, output),
        }
    }

    fn is_one_to_one(&self) -> bool {
        matches!(self.kernel, Kernel::Every(_))
    }

    fn rate(&self) -> ItemRatio {
        ItemRatio::decimate(self.decimation)
    }

    fn delay(&self) -> f64 {
        self.delay
    }

    fn holds(&self) -> u64 {
        self.taps as u64 / 2 + u64::from(self.decimation) - 1
    }

    fn memory(&self) -> Option<BlockMemory> {
        Some(BlockMemory::none().with("taps", MemorySpan::Items(self.taps as u64)))
    }

    fn messages(&self) -> Vec<MessageSpec> {
        vec![MessageSpec::new("taps", ParameterKind::Numbers, "real taps from the next item on")]
    }

    fn message(&mut self, _: &str, value: &ParameterValue) -> Result<(), BlockError> {
        let taps = from_message(value)?;
        match &mut self.kernel {
            Kernel::Every(kernel) => kernel.set_taps(&taps),
            Kernel::Some(kernel) => kernel.set_taps(&taps),
        }
        (self.taps, self.delay) = (taps.len(), delay_of(&taps));
        Ok(())
    }

    fn ns_per_item(&self) -> f64 {
        match self.kernel {
            // Neighbouring outputs share the loads of their inputs.
            Kernel::Every(_) => 0.0045 * (self.taps * size_of::<T>()) as f64 + copied_ns::<T>(),
            Kernel::Some(_) => resampled_ns::<T>(self.taps as f64, self.rate()),
        }
    }
}

fn make(parameters: &Parameters) -> Made {
    let plain = make_on_cpu(parameters)?;
    match (parameters.text("domain"), parameters.text("item")) {
        ("cpu", _) | ("auto", "f32") => Ok(plain),
        (_, "f32") => Err(parameters.wrong("domain", "\"cpu\" or \"auto\" for real items")),
        _ => millstream_accel::make::<Sample>(parameters, filter_kernel(parameters)?, |_| plain),
    }
}

fn make_on_cpu(parameters: &Parameters) -> Made {
    let taps = real_taps(parameters)?;
    let decimation = parameters.count("decimation", 1)?;
    let im = imaginary_taps(parameters, taps.len())?;
    match (parameters.text("item"), im) {
        ("cf32", Some(im)) => {
            let taps: Vec<Sample> =
                taps.iter().zip(im).map(|(re, im)| Sample::new(*re, im)).collect();
            Ok(Box::new(Through::new(Fir::with_complex_taps(&taps, decimation))))
        }
        ("cf32", None) => Ok(Box::new(Through::new(Fir::<Sample>::new(&taps, decimation)))),
        (_, Some(_)) => Err("taps_im: real items have real taps; use item = \"cf32\"".into()),
        (_, None) => Ok(Box::new(Through::new(Fir::<f32>::new(&taps, decimation)))),
    }
}

pub(crate) fn register(registry: &mut Registry) {
    let block_type =
        BlockType::declare("fir", "FIR filter with given or calculated taps; decimates.")
            .choice("item", &["cf32", "f32"], ITEM)
            .optional("decimation", 1i64, "number of input items for one output item");
    registry.register(
        millstream_accel::declare(declare(block_type))
            .example(
                "design = \"low_pass\"\nrate_hz = 1e6\ncutoff_hz = 100e3\ntransition_hz = 20e3\n\
                 decimation = 4",
            )
            .pure(make),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::{Block, Mock};

    fn registry() -> Registry {
        let mut registry = Registry::new();
        register(&mut registry);
        registry
    }

    fn run(values: &str, input: &[Sample]) -> Vec<Sample> {
        let mut mock = Mock::new(registry().make("fir", values).unwrap());
        mock.feed("in", input);
        mock.run().unwrap();
        mock.take("out")
    }

    #[test]
    fn the_time_follows_taps_with_another_delay() {
        use millstream_flow::{TagTime, TagValue, keys};
        let mut mock = Mock::new(Through::new(Fir::<f32>::new(&[0.0, 0.0, 1.0, 0.0, 0.0], 1)));
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
        let mut mock = Mock::new(Through::new(Fir::<f32>::new(&[1.0], 1)));
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
        let refused = |values: &str| match registry().make("fir", values) {
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
        assert!(refused("taps = [1]\ndecimation = 0").contains("a whole number from 1"));
    }
}
