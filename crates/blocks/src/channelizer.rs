//! A bank of channels out of one wide stream; on the CPU or on a GPU.

use crate::{Made, Sample};
use millstream_accel::{Kernel, on_host};
use millstream_dsp::design::{Band, design};
use millstream_dsp::window::Window;
use millstream_flow::registry::{BlockType, Parameters};
use millstream_flow::{BlockError, ParameterKind, Registry};

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
    let taps = design(
        band,
        1.0,
        1.0,
        transition * spacing,
        Window::named("kaiser", 7.0).ok_or("there is no window kaiser")?,
    )?;
    Ok(taps.iter().map(|tap| *tap as f32).collect())
}

fn make(parameters: &Parameters) -> Made {
    let channels = parameters.count::<usize>("channels", 2)?;
    if channels > CHANNELS_MAX {
        return Err(parameters.wrong("channels", "2 to 4096"));
    }
    let oversampling = parameters.count::<usize>("oversampling", 1)?;
    if channels % oversampling != 0 {
        return Err(parameters.wrong("oversampling", "a divisor of `channels`, such as 1 or 2"));
    }
    if channels * oversampling > RESULTS_MAX {
        let expected = format!("at most {}, for {channels} channels", RESULTS_MAX / channels);
        return Err(parameters.wrong("oversampling", &expected));
    }
    let transition = parameters.number("transition");
    if !(0.01..=1.0).contains(&transition) {
        return Err(parameters.wrong("transition", "0.01 to 1, in spacings of the channels"));
    }
    let taps = match parameters.numbers("taps") {
        [] => channel_filter(channels, transition)?,
        taps => taps.iter().map(|tap| *tap as f32).collect(),
    };
    let kernel = Kernel::Channelizer { channels, hop: channels / oversampling, taps };
    millstream_accel::make::<Sample>(parameters, kernel, on_host::<Sample>)
}

pub(crate) fn register(registry: &mut Registry) {
    let summary = "Splits a wide stream into channels: frames with one sample of each channel.";
    let block_type = BlockType::declare("channelizer", summary)
        .required("channels", ParameterKind::Integer, "channels, 2 to 4096; 0 is in the middle")
        .optional("oversampling", 1i64, "rate of a channel, in spacings of the channels")
        .optional("transition", 0.2, "transition band, in spacings of the channels")
        .optional("taps", &[][..] as &[f64], "filter of channel 0 in place of a designed one");
    registry.register(
        millstream_accel::declare(block_type).example("channels = 8\noversampling = 2").pure(make),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    fn run(values: &str, x: &[Sample]) -> Vec<Sample> {
        let mut registry = Registry::new();
        register(&mut registry);
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
