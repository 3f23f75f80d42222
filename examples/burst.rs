//! Transmits a burst at a set time, and receives it through a cable to the same radio.

use millstream::prelude::*;
use std::error::Error;
use std::time::Duration;

/// The radio receives what it transmits, 100 samples (100 µs) later.
const CABLE: &str = "radio=emulated,antenna=loopback:0;delay=100";
const DELAY: Duration = Duration::from_micros(100);
const PATIENCE: Duration = Duration::from_secs(5);

/// Arguments of a write: the burst has its time from the start of the stream, and ends with the
/// last sample.
const TIME_OF_START: Option<DeviceTime> = None;
const END_OF_BURST: bool = true;

/// Returns what was sent, and what came back.
fn run() -> Result<[Vec<[i16; 2]>; 2], Box<dyn Error>> {
    let radio = Radio::open(&CABLE.parse()?)?;
    radio.rx(0).set_rate(1e6)?;
    radio.tx(0).set_rate(1e6)?;
    let input = radio.rx(0).stream(RxOptions::default())?;
    let output = radio.tx(0).stream(TxOptions::default())?;
    let sent: Vec<_> = (0..5000).map(|n| [n + 1, -n]).collect();
    // Half a second ahead, so that the samples are there in time, and on a whole sample.
    let now = DeviceTime::from_ticks(radio.now()?.ticks_at(1e6), 1e6);
    let start = now + Duration::from_millis(500);
    input.start(StreamStart::at(start + DELAY).with_samples(5000))?;
    output.start(StreamStart::at(start))?;
    let written = output.write(&[&sent], TIME_OF_START, END_OF_BURST, PATIENCE)?;
    if !written.end_of_burst {
        return Err(format!("the radio took only {} samples", written.samples).into());
    }
    let mut received = vec![[0; 2]; 5000];
    let got = input.read(&mut [&mut received], PATIENCE)?;
    println!("{} samples sent at {start}, {} received at {:?}", sent.len(), got.samples, got.time);
    received.truncate(got.samples);
    Ok([sent, received])
}

fn main() -> Result<(), Box<dyn Error>> {
    run().map(drop)
}

#[test]
fn the_burst_comes_back_at_its_time() {
    let [sent, received] = run().unwrap();
    assert!(sent == received);
}
