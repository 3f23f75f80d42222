//! Receives the same moments from two radios, which take one time at a PPS edge.

use millstream::prelude::*;
use std::error::Error;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);
const SAMPLES: usize = 100_000;

/// Starts two radios whose samples are their own times, and whose seconds are a quarter as long;
/// returns the number of samples that are the same on both.
fn run() -> Result<usize, Box<dyn Error>> {
    let args = "radio=emulated,antenna=ramp,time_scale=4,rx_buffer_samples=67108864".parse()?;
    let radios = [Radio::open(&args)?, Radio::open(&args)?];
    for radio in &radios {
        radio.rx(0).set_rate(400e3)?;
        radio.set_time_at_pps(DeviceTime::from_ns(0))?;
    }
    // The next edge of each is less than a second away.
    std::thread::sleep(Duration::from_secs(1));
    let start = radios[0].now()?.max(radios[1].now()?) + Duration::from_millis(500);
    let mut received = [vec![[0_i16; 2]; SAMPLES], vec![[0_i16; 2]; SAMPLES]];
    let streams = radios.each_ref().map(|radio| radio.rx(0).stream(RxOptions::default()));
    let streams = streams.into_iter().collect::<Result<Vec<_>, _>>()?;
    for stream in &streams {
        stream.start(StreamStart::at(start).with_samples(SAMPLES as u64))?;
    }
    for (stream, samples) in streams.iter().zip(&mut received) {
        stream.read(&mut [samples], PATIENCE)?;
    }
    Ok(received[0].iter().zip(&received[1]).filter(|(one, two)| one == two).count())
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("{} samples of two radios are of the same moments", run()?);
    Ok(())
}

#[test]
fn both_radios_bring_the_same_moments() {
    assert_eq!(run().unwrap(), SAMPLES);
}
