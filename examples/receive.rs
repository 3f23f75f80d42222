//! Receives a tenth of a second, and says what is missing. An argument such as `addr=192.168.10.2`
//! names a radio; without one, packets of an emulated radio get lost.

use millstream::prelude::*;
use std::error::Error;
use std::time::Duration;

/// Each sample is its own time; three packets get lost, the first one behind nine others.
const EMULATED: &str =
    "radio=emulated,antenna=ramp,fault=lose to_host data skip=9 every=20 count=3";

/// Returns the number of samples that came, and of those that did not.
fn receive(args: &str, count: u64) -> Result<(u64, u64), Box<dyn Error>> {
    let radio = Radio::open(&args.parse()?)?;
    radio.rx(0).set_rate(1e6)?;
    let stream = radio.rx(0).stream(RxOptions::default())?;
    stream.start(StreamStart::now().with_samples(count))?;
    let mut samples = vec![Complex32::default(); stream.samples_per_read()];
    let (mut received, mut missing) = (0, 0);
    loop {
        match stream.read(&mut [&mut samples], Duration::from_secs(5)) {
            Ok(got) => {
                received += got.samples as u64;
                if got.end_of_burst {
                    return Ok((received, missing));
                }
                if got.samples == 0 {
                    return Err("no sample came for five seconds".into());
                }
            }
            Err(ClientError::Gap(gap)) => {
                println!("{gap}");
                missing += gap.samples;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = std::env::args().nth(1);
    let (received, missing) = receive(args.as_deref().unwrap_or(EMULATED), 100_000)?;
    println!("{received} samples received, {missing} missing");
    Ok(())
}

#[test]
fn each_sample_is_received_or_missing() {
    let (received, missing) = receive(EMULATED, 100_000).unwrap();
    assert!(missing > 0 && received + missing == 100_000, "{received} {missing}");
}
