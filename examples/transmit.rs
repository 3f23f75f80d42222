//! Transmits a tone of a tenth of a second to an emulated radio, or to the radio of an argument
//! such as `addr=192.168.10.2`, and prints what became of it.

use millstream::prelude::*;
use std::error::Error;
use std::f32::consts::TAU;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);
const SAMPLES: usize = 100_000;

/// Sends the tone as one burst; returns the last report of the radio, and the ledger.
fn transmit(args: &str) -> Result<(StatusKind, TxLedger), Box<dyn Error>> {
    let radio = Radio::open(&args.parse()?)?;
    radio.tx(0).set_rate(1e6)?;
    // 10 kHz, half of full scale.
    let tone = |n| Complex32::from_polar(0.5, TAU * 0.01 * (n % 100) as f32);
    let samples: Vec<_> = (0..SAMPLES).map(tone).collect();
    let stream = radio.tx(0).stream(TxOptions::default())?;
    stream.start(StreamStart::now())?;
    // The start says when; the burst ends with the last sample.
    let (time, end_of_burst) = (None, true);
    let written = stream.write(&[&samples], time, end_of_burst, PATIENCE)?;
    if !written.end_of_burst {
        return Err(format!("the radio took only {} samples", written.samples).into());
    }
    let report = stream.take_status(PATIENCE).ok_or("the radio reported nothing")?;
    Ok((report.kind, stream.ledger(0).unwrap_or_default()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = std::env::args().nth(1);
    let (report, ledger) = transmit(args.as_deref().unwrap_or("radio=emulated"))?;
    println!("{report:?}: {} accepted, {} transmitted", ledger.accepted, ledger.transmitted);
    Ok(())
}

#[test]
fn the_whole_tone_is_transmitted() {
    // A busy machine may bring samples too late; each of them is in the ledger.
    let (report, ledger) = transmit("radio=emulated").unwrap();
    assert_eq!(ledger.accepted, SAMPLES as u64);
    assert!(report != StatusKind::BurstEnd || ledger.lost_total() == 0, "{ledger:?}");
}
