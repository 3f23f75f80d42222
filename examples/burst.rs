//! Transmits a burst at a time, and receives it through a cable to the same radio at that time.

use millstream::prelude::*;
use std::error::Error;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);
const SAMPLES: usize = 5000;
const SAMPLE_NS: i64 = 1000;
/// The delay of the cable.
const DELAY_NS: i64 = 100 * SAMPLE_NS;

type Samples = Vec<[i16; 2]>;

/// Returns what was sent, what came back, and how many nanoseconds after its start it came.
fn run() -> Result<(Samples, Samples, i64), Box<dyn Error>> {
    let args = "radio=emulated,antenna=loopback:0;delay=100,rx_buffer_samples=16777216";
    let radio = ClientRadio::open(&args.parse::<ClientArgs>()?)?;
    for direction in [StreamDirection::Rx, StreamDirection::Tx] {
        radio.set_rate(direction, 0, 1e6)?;
    }
    let writer = radio.writer(&[0], TxOptions::default())?;
    let reader = radio.reader(&[0], RxOptions::default().with_samples_per_read(SAMPLES))?;
    // Half a second ahead, so that the samples are there in time.
    let now_ns = radio.time_ns(TimeMoment::Now)? / SAMPLE_NS * SAMPLE_NS;
    let start_ns = now_ns + 500_000_000;
    let receive = StreamStart { time_ns: Some(start_ns + DELAY_NS), samples: Some(SAMPLES as u64) };
    reader.start(receive)?;
    writer.start(StreamStart::default())?;
    let sent: Vec<_> = (0..SAMPLES).map(|n| [n as i16 + 1, -(n as i16)]).collect();
    let mut count = 0;
    while count < SAMPLES {
        // Only the first samples have a time; the others follow them.
        let time_ns = (count == 0).then_some(start_ns);
        count += writer.write(&[&sent[count..]], time_ns, true, PATIENCE)?.samples;
    }
    let mut received = vec![[0; 2]; SAMPLES];
    let read = reader.read(&mut [&mut received], PATIENCE)?;
    received.truncate(read.samples);
    match writer.take_status(PATIENCE).map(|status| status.kind) {
        Some(StatusKind::BurstEnd) => Ok((sent, received, read.time_ns - start_ns)),
        other => Err(format!("the burst was not transmitted: {other:?}").into()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (sent, received, after_ns) = run()?;
    println!("{} samples sent, {} received {after_ns} ns later", sent.len(), received.len());
    Ok(())
}

#[test]
fn the_burst_comes_back_at_its_time() {
    let (sent, received, after_ns) = run().unwrap();
    assert_eq!(after_ns, DELAY_NS);
    assert!(sent == received);
}
