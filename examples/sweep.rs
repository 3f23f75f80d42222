//! Tunes over a band, and prints the power in each step of it.

use millstream::prelude::*;
use std::error::Error;
use std::time::Duration;

const STEP_HZ: f64 = 2e6;
const SAMPLES: usize = 10_000;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Returns the mean power of samples that a new start brings, dB of full scale (dBFS). With missing
/// samples it measures again.
fn power_dbfs(stream: &RxStream) -> Outcome<f64> {
    let mut samples = vec![Complex32::default(); SAMPLES];
    for _ in 0..3 {
        stream.start(StreamStart::now().with_samples(SAMPLES as u64))?;
        match stream.read(&mut [&mut samples], Duration::from_secs(5)) {
            Ok(got) if got.samples == SAMPLES => {
                let energy: f64 = samples.iter().map(|x| f64::from(x.norm_sqr())).sum();
                return Ok(10.0 * (energy / SAMPLES as f64).log10());
            }
            Ok(got) if got.abrupt_end => {}
            Ok(got) => return Err(format!("only {} of {SAMPLES} samples came", got.samples).into()),
            Err(ClientError::Gap(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err("samples were missing each time".into())
}

/// Returns the frequency of each step, Hz, and the power there, dBFS.
fn sweep(args: &str, from_hz: f64, steps: u32) -> Outcome<Vec<(f64, f64)>> {
    let radio = Radio::open(&args.parse()?)?;
    let channel = radio.rx(0);
    channel.set_rate(STEP_HZ)?;
    channel.set_gain(40.0)?;
    let stream = channel.stream(RxOptions::default())?;
    let mut powers = Vec::new();
    for step in 0..steps {
        let tuned = channel.set_frequency(from_hz + f64::from(step) * STEP_HZ, None)?;
        // Started behind the tuning: no sample of the step before comes.
        powers.push((tuned.freq_hz, power_dbfs(&stream)?));
    }
    Ok(powers)
}

fn main() -> Outcome<()> {
    let args = std::env::args().nth(1);
    for (freq_hz, power) in sweep(args.as_deref().unwrap_or("radio=emulated"), 990e6, 11)? {
        println!("{:7.1} MHz {power:6.1} dBFS", freq_hz / 1e6);
    }
    Ok(())
}

#[test]
fn the_carrier_of_the_scene_is_the_strongest() {
    let powers = sweep("radio=emulated", 990e6, 11).unwrap();
    let strongest = powers.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    assert!((strongest.0 - 1000e6).abs() < 1e3, "{powers:?}");
}
