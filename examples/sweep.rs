//! Tunes over a band, and prints the power in each step of it.

use millstream::prelude::*;
use std::error::Error;
use std::time::Duration;

const STEP_HZ: f64 = 2e6;

/// Returns the frequency of each step, Hz, and the power there, dB below full scale.
fn sweep(args: &str, from_hz: f64, steps: u32) -> Result<Vec<(f64, f64)>, Box<dyn Error>> {
    let radio = Radio::open(&args.parse()?)?;
    let channel = radio.rx(0);
    channel.set_rate(STEP_HZ)?;
    channel.set_gain(40.0)?;
    let stream = channel.stream(RxOptions::default())?;
    let mut samples = vec![Complex32::default(); 10_000];
    let mut powers = Vec::new();
    for step in 0..steps {
        let tuned = channel.set_frequency(from_hz + f64::from(step) * STEP_HZ, None)?;
        // A start behind the tuning: no sample of the step before comes.
        stream.start(StreamStart::now().with_samples(10_000))?;
        let got = stream.read(&mut [&mut samples], Duration::from_secs(5))?;
        if got.samples == 0 {
            return Err("no samples came for five seconds".into());
        }
        let energy: f32 = samples[..got.samples].iter().map(|sample| sample.norm_sqr()).sum();
        powers.push((tuned.freq_hz, 10.0 * f64::from(energy / got.samples as f32).log10()));
    }
    Ok(powers)
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = std::env::args().nth(1);
    for (freq_hz, power) in sweep(args.as_deref().unwrap_or("radio=emulated"), 990e6, 11)? {
        println!("{:7.1} MHz {power:6.1} dB", freq_hz / 1e6);
    }
    Ok(())
}

#[test]
fn the_carrier_of_the_scene_is_the_strongest() {
    let powers = sweep("radio=emulated,rx_buffer_samples=16777216", 990e6, 11).unwrap();
    let strongest = powers.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    assert!((strongest.0 - 1000e6).abs() < 1e3, "{powers:?}");
}
