//! A bank of channels out of one wide stream; on the CPU or on a GPU.

use crate::{Made, Sample};
use millstream_accel::{Kernel, OffloadParameters, on_host};
use millstream_dsp::design::{Band, design};
use millstream_dsp::window::Window;
use millstream_flow::BlockError;
use millstream_flow::registry::{BlockParameters, wrong};

/// The most channels.
const CHANNELS_MAX: usize = 4096;

/// The most results of a frame.
const RESULTS_MAX: usize = 1 << 16;

/// Designs the filter of channel 0: half its gain at the border between two channels, and a
/// transition band of `transition` of their spacing.
///
/// # Errors
/// A width that needs too many taps.
pub fn channel_filter(channels: usize, transition: f64) -> Result<Vec<f32>, BlockError> {
    let spacing = 1.0 / channels as f64;
    let band = Band::Low { cutoff_hz: spacing / 2.0 };
    let taps = design(band, 1.0, 1.0, transition * spacing, Window::Kaiser(7.0))?;
    Ok(taps.iter().map(|tap| *tap as f32).collect())
}

/// Splits a wide stream into channels: frames with one sample of each channel.
#[derive(BlockParameters)]
#[block(channelizer, pure, example = "channels = 8\noversampling = 2")]
struct ChannelizerParameters {
    /// channels; 0 is in the middle
    #[parameter(least = 2, most = CHANNELS_MAX)]
    channels: usize,
    /// rate of a channel, in spacings of the channels
    #[parameter(default = 1, least = 1)]
    oversampling: usize,
    /// transition band, in spacings of the channels
    #[parameter(default = 0.2, least = 0.01, most = 1)]
    transition: f64,
    /// filter of channel 0 in place of a designed one
    taps: Option<Vec<f32>>,
    #[parameter(flatten)]
    offload: OffloadParameters,
}

impl ChannelizerParameters {
    fn make(self) -> Made {
        let Self { channels, oversampling, .. } = self;
        let refused = |expected: &str| Err(wrong("oversampling", oversampling, expected));
        if channels % oversampling != 0 {
            return refused("a divisor of `channels`, such as 1 or 2");
        }
        if channels * oversampling > RESULTS_MAX {
            let most = RESULTS_MAX / channels;
            return refused(&format!("at most {most}, for {channels} channels"));
        }
        let taps = self.taps.map_or_else(|| channel_filter(channels, self.transition), Ok)?;
        let kernel = Kernel::Channelizer { channels, hop: channels / oversampling, taps };
        self.offload.make::<Sample>(kernel, on_host::<Sample>)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    fn run(values: &str, x: &[Sample]) -> Vec<Sample> {
        let registry = crate::registry();
        let mut mock = Mock::new(registry.make("channelizer", values).unwrap());
        mock.feed("in", x);
        mock.run().unwrap();
        mock.take("out")
    }

    #[test]
    fn a_tone_is_in_its_channel_at_its_frequency() {
        let channels = 16;
        for (oversampling, rate) in [(1usize, 1.0 / 16.0), (2, 1.0 / 8.0)] {
            for channel in [0, 3, 15] {
                let offset = 0.011;
                let hz = f64::from(channel) / 16.0 + offset;
                let angle = |n: usize, hz: f64| (std::f64::consts::TAU * hz * n as f64) as f32;
                let x: Vec<_> = (0..16_000)
                    .map(|n| Sample::from_polar(1.0, angle(n, hz) % 6.283_185_5))
                    .collect();
                let out = run(&format!("channels = {channels}\noversampling = {oversampling}"), &x);
                assert_eq!(out.len(), 16_000 * oversampling);
                let (before, last) = out[out.len() - 2 * channels..].split_at(channels);
                for (c, y) in last.iter().enumerate() {
                    let expected = if c == channel as usize { 1.0 } else { 0.0 };
                    assert!((y.norm() - expected).abs() < 2e-3, "{channel}: {c} has {y}");
                }
                let turn = (last[channel as usize] / before[channel as usize]).arg();
                let expected = std::f64::consts::TAU * offset / rate;
                assert!((f64::from(turn) - expected).abs() < 1e-3, "{turn} {expected}");
            }
        }
    }
}
