//! Transmits what it receives, a tenth of a second later: one loop, no callback, no thread.

use millstream::prelude::*;
use std::error::Error;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);

/// Repeats `count` samples; returns how many of them are missing.
fn repeat(args: &str, count: u64) -> Result<u64, Box<dyn Error>> {
    let radio = Radio::open(&args.parse()?)?;
    radio.rx(0).set_rate(1e6)?;
    radio.tx(0).set_rate(1e6)?;
    let input = radio.rx(0).stream(RxOptions::default())?;
    let output = radio.tx(0).stream(TxOptions::default())?;
    input.start(StreamStart::now().with_samples(count))?;
    output.start(StreamStart::now())?;
    let mut samples = vec![[0_i16; 2]; input.samples_per_read()];
    let mut missing = 0;
    loop {
        match input.read(&mut [&mut samples], PATIENCE) {
            Ok(got) => {
                // A burst ends before a gap; the next one begins with its own time.
                let ends = got.abrupt_end || got.end_of_burst;
                let time = got.time.map(|time| time + Duration::from_millis(100));
                let written = output.write(&[&samples[..got.samples]], time, ends, PATIENCE)?;
                if got.end_of_burst {
                    return Ok(missing);
                }
                if got.samples == 0 || written.samples < got.samples {
                    return Err("the radio gave or took no samples for five seconds".into());
                }
            }
            Err(ClientError::Gap(gap)) => missing += gap.samples,
            Err(error) => return Err(error.into()),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("{} samples of 500000 are missing", repeat("radio=emulated", 500_000)?);
    Ok(())
}

#[test]
fn what_is_not_missing_is_repeated() {
    let lossy = "radio=emulated,fault=lose to_host data skip=9 every=20 count=2";
    let missing = repeat(lossy, 100_000).unwrap();
    assert!((1..100_000).contains(&missing), "{missing}");
}
