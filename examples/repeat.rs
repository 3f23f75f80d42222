//! Transmits what it receives, a tenth of a second later: one loop, no callback, no thread.

use millstream::prelude::*;
use std::error::Error;
use std::time::Duration;

const LATER: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(5);

/// Repeats `count` samples; returns how many were received, and how many are missing.
fn repeat(args: &str, count: u64) -> Result<(u64, u64), Box<dyn Error>> {
    let radio = Radio::open(&args.parse()?)?;
    radio.rx(0).set_rate(1e6)?;
    radio.tx(0).set_rate(1e6)?;
    let input = radio.rx(0).stream(RxOptions::default())?;
    let output = radio.tx(0).stream(TxOptions::default())?;
    input.start(StreamStart::now().with_samples(count))?;
    output.start(StreamStart::now())?;
    let mut samples = vec![[0_i16; 2]; input.samples_per_read()];
    let (mut received, mut missing) = (0, 0);
    while received + missing < count {
        match input.read(&mut [&mut samples], PATIENCE) {
            Ok(got) => {
                received += got.samples as u64;
                // A burst ends before a gap; the next one begins with its own time.
                let (ends, time) = (got.abrupt_end || got.end_of_burst, got.time);
                let part = &samples[..got.samples];
                output.write(&[part], time.map(|time| time + LATER), ends, PATIENCE)?;
            }
            Err(ClientError::Gap(gap)) => missing += gap.samples,
            Err(error) => return Err(error.into()),
        }
    }
    Ok((received, missing))
}

fn main() -> Result<(), Box<dyn Error>> {
    let (received, missing) = repeat("radio=emulated", 500_000)?;
    println!("{received} samples repeated, {missing} missing");
    Ok(())
}

#[test]
fn each_sample_is_repeated_or_missing() {
    let (received, missing) = repeat("radio=emulated", 100_000).unwrap();
    assert!(received > 0 && received + missing == 100_000, "{received} {missing}");
}
