//! Two radios that take one time at a PPS edge, and then receive the same moments.

use millstream::prelude::*;
use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const SAMPLES: usize = 100_000;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Whether both had the same time at the latest edge; false also when an edge came meanwhile.
fn are_in_step([first, second]: &[Radio; 2]) -> Outcome<bool> {
    let edges = [first.last_pps()?, second.last_pps()?, first.last_pps()?];
    Ok(edges[0] == edges[1] && edges[0] == edges[2])
}

/// Opens two radios that both take the time 0 at one edge. Emulated radios of one machine have
/// their edges at the same moments, as radios have that share a cable.
fn in_step() -> Outcome<[Radio; 2]> {
    // Noise costs less to compute than the stations that are heard without an `antenna`.
    let args = "radio=emulated,antenna=noise".parse()?;
    let radios = [Radio::open(&args)?, Radio::open(&args)?];
    for _ in 0..5 {
        for radio in &radios {
            radio.rx(0).set_rate(1e6)?;
            radio.set_time_at_pps(DeviceTime::from_ns(0))?;
        }
        sleep(SECOND + SECOND / 10);
        // With an edge between the two commands they differ by a second: they are set again.
        if are_in_step(&radios)? {
            return Ok(radios);
        }
    }
    Err("the radios do not agree on the time: do they have a common PPS?".into())
}

/// Receives from both at one time.
fn receive(radios: &[Radio; 2]) -> Outcome<Vec<Received>> {
    // Two seconds ahead, so that both streams are open and started by then.
    let start = radios[0].now()? + 2 * SECOND;
    let mut streams = Vec::new();
    for radio in radios {
        let stream = radio.rx(0).stream(RxOptions::default())?;
        stream.start(StreamStart::at(start).with_samples(SAMPLES as u64))?;
        streams.push(stream);
    }
    let mut samples = vec![[0_i16; 2]; SAMPLES];
    streams.iter().map(|stream| Ok(stream.read(&mut [&mut samples], 5 * SECOND)?)).collect()
}

fn main() -> Outcome<()> {
    for got in receive(&in_step()?)? {
        println!("{} of {SAMPLES} samples, from {:?} on", got.samples, got.time);
    }
    Ok(())
}

#[test]
fn both_radios_bring_the_same_moments() {
    let radios = in_step().unwrap();
    // The second one is read between two looks at the first, at whatever pace the machine has.
    let [before, between, after] = [0, 1, 0].map(|radio: usize| radios[radio].now().unwrap());
    assert!(before <= between && between <= after, "{before} {between} {after}");
    let received = receive(&radios).unwrap();
    assert_eq!(received.iter().map(|got| got.samples).collect::<Vec<_>>(), [SAMPLES; 2]);
    assert!(received[0].time == received[1].time && received[0].time > Some(after));
}

#[test]
fn radios_with_other_times_are_not_in_step() {
    let radios = in_step().unwrap();
    radios[1].set_time(radios[0].now().unwrap() + SECOND).unwrap();
    // It holds for edges from now on.
    let edge = radios[0].last_pps().unwrap();
    while radios[0].last_pps().unwrap() == edge {}
    assert!(!are_in_step(&radios).unwrap());
}
