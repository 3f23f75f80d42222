//! The transmitter's signal and its impairments, measured by other means than those that make them.

mod common;

use common::impaired;
use millstream_atsc::Sample;
use millstream_atsc::params::{DATA_POWER, PILOT_LEVEL, PILOT_OFFSET_HZ, ROLL_OFF, SYMBOL_RATE_HZ};
use millstream_atsc::tx::{Adjacent, CHANNEL_HZ, ImpairmentError, Impairments};
use millstream_atsc::tx::{TestSignal, TxConfig, in_nyquist_bandwidth};
use millstream_dsp::pulse::root_raised_cosine;
use millstream_dsp::spectrum::LineFinder;
use millstream_dsp::window::Window;
use rustfft::FftPlanner;

fn power(samples: &[Sample]) -> f64 {
    samples.iter().map(|x| f64::from(x.norm_sqr())).sum::<f64>() / samples.len() as f64
}

fn db(ratio: f64) -> f64 {
    10.0 * ratio.log10()
}

/// Power of samples between two frequencies, averaged over windowed spectra.
fn power_between(samples: &[Sample], rate_hz: f64, low_hz: f64, high_hz: f64) -> f64 {
    const LEN: usize = 4096;
    // Side lobes beyond 110 dB.
    let window = Window::Kaiser(16.0).periodic(LEN);
    let energy: f64 = window.iter().map(|w| w * w).sum();
    let fft = FftPlanner::new().plan_fft_forward(LEN);
    let mut sum = 0.0;
    let blocks = samples.chunks_exact(LEN);
    let count = blocks.len() as f64;
    for block in blocks {
        let mut block: Vec<Sample> =
            block.iter().zip(&window).map(|(x, w)| x * *w as f32).collect();
        fft.process(&mut block);
        for (bin, x) in block.iter().enumerate() {
            let bin = if bin < LEN / 2 { bin as f64 } else { bin as f64 - LEN as f64 };
            let hz = bin * rate_hz / LEN as f64;
            if (low_hz..high_hz).contains(&hz) {
                sum += f64::from(x.norm_sqr());
            }
        }
    }
    sum / (count * energy * LEN as f64)
}

#[test]
fn the_signal_has_its_power_with_the_pilot_where_it_belongs() {
    for rate_hz in [6.25e6, 25e6] {
        let samples = impaired(1, 0.1, rate_hz, &Impairments::default());
        let level = db(power(&samples) / 0.04);
        assert!(level.abs() < 0.05, "{rate_hz}: {level} dB off");
        let pilot = [PILOT_OFFSET_HZ - 60e3, PILOT_OFFSET_HZ + 60e3];
        let share = power_between(&samples, rate_hz, pilot[0], pilot[1]) / power(&samples);
        // 1.25² over 21 + 1.25², and at the band's edge half of the data's density in 120 kHz.
        assert!((db(share) + 11.0).abs() < 0.2, "{rate_hz}: pilot at {} dB", db(share));
    }
}

#[test]
fn noise_is_as_far_below_the_signal_in_the_channel_as_asked() {
    for rate_hz in [6.25e6, 20e6] {
        let clean = impaired(2, 0.05, rate_hz, &Impairments::default());
        let spoilt = Impairments { cn_db: Some(15.0), ..Impairments::default() };
        let noisy = impaired(2, 0.05, rate_hz, &spoilt);
        let noise: Vec<Sample> = noisy.iter().zip(&clean).map(|(a, b)| a - b).collect();
        let half = CHANNEL_HZ / 2.0;
        let found = db(power(&clean) / power_between(&noise, rate_hz, -half, half));
        assert!((found - 15.0).abs() < 0.1, "{rate_hz}: {found} dB");
    }
    assert!((in_nyquist_bandwidth(15.0) - 15.4725).abs() < 1e-3);
}

#[test]
fn a_neighbour_stands_in_its_channel_with_its_level() {
    let rate_hz = 25e6;
    let adjacent =
        vec![Adjacent { channels: 1, level_db: 20.0 }, Adjacent { channels: -1, level_db: -10.0 }];
    let samples = impaired(3, 0.03, rate_hz, &Impairments { adjacent, ..Impairments::default() });
    let channel = |middle: f64| power_between(&samples, rate_hz, middle - 3e6, middle + 3e6);
    assert!((db(channel(6e6) / 0.04) - 20.0).abs() < 0.2);
    assert!((db(channel(-6e6) / 0.04) + 10.0).abs() < 0.2);
    assert!(db(channel(0.0) / 0.04).abs() < 0.2);
}

#[test]
fn carrier_and_clock_are_off_as_asked() {
    let spoilt = Impairments { offset_hz: 40e3, clock_ppm: 50.0, ..Impairments::default() };
    let samples = impaired(4, 0.02, 6.25e6, &spoilt);
    let mut finder = LineFinder::new(65_536);
    let (re, im): (Vec<f32>, Vec<f32>) = samples[..65_536].iter().map(|x| (x.re, x.im)).unzip();
    let line = finder.find(&re, &im, PILOT_OFFSET_HZ / 6.25e6, 0.02).unwrap();
    // A faster clock moves the pilot further away from the middle.
    let expected = PILOT_OFFSET_HZ * (1.0 + 50e-6) + 40e3;
    assert!((line.frequency * 6.25e6 - expected).abs() < 5.0, "{line:?} for {expected}");
}

#[test]
fn what_cannot_be_says_why() {
    let error = |impairments: &Impairments| -> ImpairmentError {
        TestSignal::new(TxConfig::default(), impairments, 1).expect_err("it makes no sense")
    };
    let none = Impairments::default;
    let adjacent = vec![Adjacent { channels: -1, level_db: 0.0 }];
    for (impairments, text) in [
        (
            Impairments { adjacent, ..none() },
            "a signal -1 channels away needs a sample rate of 18000000 Hz or more, not 6250000 Hz",
        ),
        (
            Impairments { clock_ppm: f64::NAN, ..none() },
            "a clock error in ppm of NaN: give a number from -10000 to 10000",
        ),
        (
            Impairments { bits: Some(1), ..none() },
            "a number of bits of 1: give a number from 2 to 16",
        ),
        (
            Impairments { echoes: vec!["1s:0dB".parse().unwrap()], ..none() },
            "an echo 1 s after the signal is beyond what is simulated at this rate: at most \
             0.16777216 s",
        ),
    ] {
        assert_eq!(error(&impairments).to_string(), text);
    }
    let config = TxConfig { sample_rate_hz: 1e6, ..TxConfig::default() };
    let error = TestSignal::new(config, &none(), 1).unwrap_err().to_string();
    assert!(error.starts_with("a sample rate of 1000000 Hz cannot carry 8-VSB"), "{error}");
}

/// 47 CFR 73.622(h): attenuation that the power in 500 kHz needs below the signal's power, at a
/// distance from the channel's edge.
fn mask_db(from_edge_hz: f64) -> f64 {
    match from_edge_hz / 1e6 {
        ..0.5 => 47.0,
        mhz @ ..6.0 => 11.5 * (mhz + 3.6),
        _ => 110.0,
    }
}

#[test]
fn emissions_stay_below_the_mask() {
    let rate_hz = 25e6;
    let samples = impaired(5, 0.1, rate_hz, &Impairments::default());
    let (total, mut least_room) = (power(&samples), f64::MAX);
    for step in 0..18 {
        let from_edge_hz = f64::from(step) * 500e3;
        let low = CHANNEL_HZ / 2.0 + from_edge_hz;
        for [low, high] in [[low, low + 500e3], [-low - 500e3, -low]] {
            let below = db(total / power_between(&samples, rate_hz, low, high));
            // A band that begins at the edge of a stricter rule still falls under the one before.
            let wanted = mask_db(from_edge_hz + 250e3);
            assert!(below > wanted, "{low} Hz: {below} dB below the signal, {wanted} dB wanted");
            least_room = least_room.min(below - wanted);
        }
    }
    println!("at least {least_room:.1} dB better than the mask");
}

/// Symbols by the filter that matches the standard's pulse, far longer than the transmitter's.
fn matched(samples: &[Sample], rate_hz: f64, symbol: usize) -> f64 {
    const SPAN: f64 = 150.0;
    let per_pair = 2.0 * rate_hz / SYMBOL_RATE_HZ;
    let middle = symbol as f64 / 2.0 * per_pair;
    let first = (middle - SPAN * per_pair).max(0.0) as usize;
    let last = ((middle + SPAN * per_pair) as usize).min(samples.len() - 1);
    // (-j)^k: even symbols in the real part, odd ones in the imaginary part.
    let part = |x: &Sample| match symbol % 4 {
        0 => x.re,
        1 => -x.im,
        2 => -x.re,
        _ => x.im,
    };
    let pulse = |n: usize| root_raised_cosine((n as f64 - middle) / per_pair, ROLL_OFF);
    (first..=last).map(|n| f64::from(part(&samples[n])) * pulse(n)).sum()
}

#[test]
fn the_transmitters_own_symbols_are_50_db_clean() {
    for rate_hz in [6.25e6, 12.5e6] {
        let samples = impaired(6, 0.001, rate_hz, &Impairments::default());
        let (mut signal, mut error) = (0.0, 0.0);
        let values: Vec<f64> = (2000..5000).map(|k| matched(&samples, rate_hz, k)).collect();
        // A constant gain is no error: the segment sync's levels tell it.
        let mean_square = values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64;
        let power = f64::from(DATA_POWER + PILOT_LEVEL * PILOT_LEVEL);
        let mut gain = (power / mean_square).sqrt();
        for _ in 0..3 {
            let decided = |x: f64| {
                let level = gain * x - f64::from(PILOT_LEVEL);
                2.0 * ((level - 1.0) / 2.0).round() + 1.0 + f64::from(PILOT_LEVEL)
            };
            (signal, error) = (0.0, 0.0);
            let (mut along, mut square) = (0.0, 0.0);
            for x in &values {
                let level = decided(*x);
                signal += level * level;
                error += (gain * x - level).powi(2);
                along += x * level;
                square += x * x;
            }
            gain = along / square;
        }
        let mer_db = db(signal / error);
        println!("{rate_hz} Hz: modulation error ratio {mer_db:.1} dB");
        assert!(mer_db > 50.0, "{rate_hz} Hz: {mer_db} dB");
    }
}
