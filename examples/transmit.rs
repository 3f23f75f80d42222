//! Transmits a tone of a tenth of a second to an emulated radio in this process, and prints what
//! the radio reported.

use millstream::prelude::*;
use std::error::Error;
use std::f32::consts::TAU;
use std::time::Duration;

const RATE_HZ: f64 = 1e6;
const SAMPLES: usize = 100_000;

/// Returns a tone at 10 kHz, half of full scale.
fn tone() -> Vec<Complex32> {
    (0..SAMPLES).map(|n| Complex32::from_polar(0.5, TAU * 0.01 * (n % 100) as f32)).collect()
}

/// Sends the tone as one burst; returns the ledger of the stream.
fn transmit(args: DeviceArgs) -> Result<TxLedger, Box<dyn Error>> {
    let mut device = Device::open(args)?;
    device.set_rate(RATE_HZ)?;
    let mut stream = device.tx_stream(TxArgs::new(0))?;
    let samples = tone();
    let mut sent = 0;
    // A call takes as many samples as the device has room for.
    while sent < samples.len() {
        let meta = TxMetadata::now().ending();
        sent += stream.send(&samples[sent..], meta, Duration::from_secs(1))?.samples;
    }
    let ledger = stream.finish();
    ledger.balance()?;
    Ok(ledger)
}

/// Returns the ledger, and the number of samples that the radio transmitted.
fn transmit_to_an_emulated_radio() -> Result<(TxLedger, u64), Box<dyn Error>> {
    let (radio, args) = millstream::emulated_radio(RadioConfig::default())?;
    let ledger = transmit(args)?;
    Ok((ledger, radio.stop().tx_samples))
}

fn main() -> Result<(), Box<dyn Error>> {
    let (ledger, played) = transmit_to_an_emulated_radio()?;
    println!("{} accepted, {} transmitted", ledger.accepted, ledger.transmitted);
    println!("the radio counted {played}");
    Ok(())
}

#[test]
fn the_ledger_agrees_with_the_radio() {
    let (ledger, played) = transmit_to_an_emulated_radio().unwrap();
    assert_eq!(ledger.accepted, SAMPLES as u64);
    assert_eq!(ledger.transmitted, played);
}
