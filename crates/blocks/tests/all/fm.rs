//! The FM receiver of `graphs/fm-rx.toml`, on a broadcast that is synthesised here by formula.

use millstream_blocks::Sample;
use millstream_dsp::noise::Noise;
use millstream_flow::{GraphFile, Registry};
use std::f64::consts::TAU;
use std::path::Path;

const RATE_HZ: f64 = 1.2e6;
const TONE_HZ: f64 = 1000.0;
const STATION_HZ: f64 = 200e3;

/// Returns a second of a station at 200 kHz (a tone of 1 kHz at 90 % of the deviation, without
/// pre-emphasis), another station on a nearby frequency, and noise.
fn broadcast() -> Vec<Sample> {
    let peak_rad = 0.9 * 75e3 / TONE_HZ;
    let mut noise = Noise::new(11);
    let sample = |n: u32| {
        let t = f64::from(n) / RATE_HZ;
        let turn = STATION_HZ * t;
        let (sin, cos) = (TAU * turn - peak_rad * (TAU * TONE_HZ * t).cos()).sin_cos();
        let (other_sin, other_cos) = (TAU * -300e3 * t + 30.0 * (TAU * 400.0 * t).sin()).sin_cos();
        let wanted = Sample::new(cos as f32, sin as f32) * 0.3;
        wanted
            + Sample::new(other_cos as f32, other_sin as f32) * 0.3
            + noise.gaussian_pair() * 0.003
    };
    (0..1_200_000).map(sample).collect()
}

/// Returns the power of a tone of `hz` in `x`, and that of the rest.
fn split(x: &[f32], hz: f64, rate_hz: f64) -> (f64, f64) {
    let mut sums = [0.0; 2];
    let mut power = 0.0;
    for (n, x) in x.iter().enumerate() {
        let (sin, cos) = (TAU * hz * n as f64 / rate_hz).sin_cos();
        sums[0] += f64::from(*x) * cos;
        sums[1] += f64::from(*x) * sin;
        power += f64::from(*x).powi(2);
    }
    let count = x.len() as f64;
    let tone = 2.0 * (sums[0].powi(2) + sums[1].powi(2)) / (count * count);
    (tone, power / count - tone)
}

#[test]
fn the_tone_that_was_sent_is_heard() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.cf32"), folder.path().join("out.f32"));
    std::fs::write(&input, bytemuck::cast_slice(&broadcast())).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphs/fm-rx.toml");
    let file = GraphFile::read(&root).unwrap();
    let mut registry = Registry::builtin();
    millstream_blocks::register(&mut registry);
    let set = [
        format!("in={}", input.display()),
        format!("out={}", output.display()),
        format!("shift={}", -STATION_HZ),
    ];
    file.build(&registry, &set).unwrap().run(file.plan()).unwrap();
    let audio: Vec<f32> =
        std::fs::read(&output).unwrap().chunks_exact(4).map(bytemuck::pod_read_unaligned).collect();
    assert_eq!(audio.len(), 48_000);
    // Whole periods, after the filters have settled.
    let (tone, rest) = split(&audio[4800..], TONE_HZ, 48_000.0);
    let emphasis = 1.0f64.hypot(TAU * TONE_HZ * 50e-6);
    let amplitude = (2.0 * tone).sqrt();
    let snr_db = 10.0 * (tone / rest).log10();
    println!("amplitude {amplitude:.4}, signal to noise and distortion {snr_db:.1} dB");
    assert!((amplitude - 0.9 / emphasis).abs() < 0.005, "{amplitude}");
    assert!(snr_db > 50.0, "{snr_db} dB");
}
