//! Receives a million samples and prints their power and the ledger. Without an argument an
//! emulated radio in this process sends a tone; an argument such as `addr=192.168.10.2` names a
//! radio.

use millstream::prelude::*;
use std::error::Error;
use std::time::Duration;

const SAMPLES: u64 = 1_000_000;

/// Starts an emulated radio; returns it and the arguments to open it.
fn emulated() -> Result<(RunningRadio, DeviceArgs), Box<dyn Error>> {
    Ok(millstream::emulated_radio(RadioConfig {
        rx_antennas: vec!["tone:100e3,0.5".to_owned()],
        rx_buffer_samples: 1 << 24,
        ..RadioConfig::default()
    })?)
}

/// Returns the mean power of the samples, full scale being 1, and the ledger.
fn receive(args: DeviceArgs) -> Result<(f64, Ledger), Box<dyn Error>> {
    let mut device = Device::open(args)?;
    device.set_rate(1e6)?;
    let mut stream = device.rx_stream(RxArgs::new(0))?;
    stream.start_finite(SAMPLES, None)?;
    let mut samples = vec![Complex32::default(); 4096];
    let mut energy = 0.0;
    while stream.is_running() {
        let meta = stream.recv(&mut samples, Duration::from_secs(1))?;
        energy += samples[..meta.samples].iter().map(|x| f64::from(x.norm_sqr())).sum::<f64>();
    }
    let ledger = stream.finish();
    ledger.balance()?;
    Ok((energy / ledger.delivered.max(1) as f64, ledger))
}

fn main() -> Result<(), Box<dyn Error>> {
    let (power, ledger) = match std::env::args().nth(1) {
        Some(args) => receive(args.parse::<DeviceArgs>()?)?,
        None => {
            let (_radio, args) = emulated()?;
            receive(args)?
        }
    };
    println!("power {power:.4}; {} of {} samples", ledger.delivered, ledger.expected);
    for (cause, lost) in ledger.losses().filter(|(_, lost)| *lost > 0) {
        println!("{lost} lost: {cause}");
    }
    Ok(())
}

#[test]
fn the_tone_arrives() {
    let (_radio, args) = emulated().unwrap();
    let (power, ledger) = receive(args).unwrap();
    assert_eq!(ledger.expected, SAMPLES);
    assert!(ledger.delivered < SAMPLES || (power - 0.25).abs() < 1e-3, "power {power}");
}
