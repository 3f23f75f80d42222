//! The transmitter's signal and its impairments, measured by independent methods.

use crate::common::impaired;
use millstream_atsc::Sample;
use millstream_atsc::params::PILOT_OFFSET_HZ;
use millstream_atsc::tx::quality::{mask_room_db, modulation_error_ratio_db};
use millstream_atsc::tx::{Adjacent, CHANNEL_HZ, ImpairmentError, Impairments};
use millstream_atsc::tx::{TestSignal, TxConfig, in_nyquist_bandwidth};
use millstream_dsp::band_power::BandPower;
use millstream_dsp::spectrum::LineFinder;

fn power(samples: &[Sample]) -> f64 {
    samples.iter().map(|x| f64::from(x.norm_sqr())).sum::<f64>() / samples.len() as f64
}

fn db(ratio: f64) -> f64 {
    10.0 * ratio.log10()
}

/// Returns the power of samples between two frequencies.
fn power_between(samples: &[Sample], rate_hz: f64, low_hz: f64, high_hz: f64) -> f64 {
    BandPower::of(samples, rate_hz).within(low_hz..high_hz)
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
            "a neighbouring channel at -1 needs a sample rate of at least 18000000 Hz, but the \
             rate is 6250000 Hz: give a higher rate, or leave the channel out",
        ),
        (
            Impairments { clock_ppm: f64::NAN, ..none() },
            "a clock error in ppm is NaN: give a number from -10000 to 10000",
        ),
        (
            Impairments { bits: Some(1), ..none() },
            "a number of bits is 1: give a number from 2 to 16",
        ),
        (
            Impairments { echoes: vec!["1s:0dB".parse().unwrap()], ..none() },
            "an echo 1 s after the signal is too late at this sample rate: give at most \
             0.16777216 s",
        ),
    ] {
        assert_eq!(error(&impairments).to_string(), text);
    }
    let config = TxConfig { sample_rate_hz: 1e6, ..TxConfig::default() };
    let error = TestSignal::new(config, &none(), 1).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "the sample rate is 1000000 Hz, at which an ATSC channel cannot be transmitted"
        ),
        "{error}"
    );
}

#[test]
fn emissions_stay_below_the_mask() {
    let samples = impaired(5, 0.1, 25e6, &Impairments::default());
    let room = mask_room_db(&samples, 25e6);
    println!("at least {room:.1} dB better than the mask");
    assert!(room > 3.0, "{room} dB");
    // The measurement detects a violation: a tone 1 MHz beside the channel, 47 dB down.
    let mut spoilt = samples;
    for (n, x) in spoilt.iter_mut().enumerate() {
        let turn = std::f64::consts::TAU * (0.16 * n as f64).fract();
        *x += Sample::from_polar(0.2 * 10f32.powf(-47.0 / 20.0), turn as f32);
    }
    let room = mask_room_db(&spoilt, 25e6);
    assert!((room + 6.0).abs() < 3.0, "{room} dB");
}

#[test]
fn the_transmitters_own_symbols_are_50_db_clean() {
    for rate_hz in [6.25e6, 12.5e6] {
        let samples = impaired(6, 0.001, rate_hz, &Impairments::default());
        let mer_db = modulation_error_ratio_db(&samples, rate_hz, 2000..5000);
        println!("{rate_hz} Hz: modulation error ratio {mer_db:.1} dB");
        assert!(mer_db > 50.0, "{rate_hz} Hz: {mer_db} dB");
    }
    // The measured noise is correct: the symbols' bandwidth has 0.47 dB less of it than the
    // channel.
    let noisy = Impairments { cn_db: Some(25.0), ..Impairments::default() };
    let samples = impaired(6, 0.001, 6.25e6, &noisy);
    let mer_db = modulation_error_ratio_db(&samples, 6.25e6, 2000..5000);
    assert!((mer_db - in_nyquist_bandwidth(25.0)).abs() < 0.5, "{mer_db} dB");
}
